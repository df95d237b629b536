"""Mathematics without mechanics: linear algebra, collocation, compositions, discrete gradients, sums."""
