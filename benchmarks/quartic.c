/* The quartic system of CFHM (19)-(20), n = 3, by Gonzalez's discrete gradient (CFHM (12), (14)), written by hand.
 *
 * The same method as noslip's DiscreteGradient() with the same stopping rule, energy anchor, guard near rest,
 * compensated sums and extrapolated guess, with everything that a person knows about this one system put in:
 * unit masses, the frame d/dw_i, w_i d/dx - d/dz_i, and X^T X inverted by the formula of Sherman and Morrison.
 * Stiffness and coupling are arguments, as they are for noslip. No fallback for a solve that fails: it returns -1.
 */
#include <math.h>
#include <string.h>
#ifndef PAST
#define PAST 6
#endif
enum { W = 1, Z = 4, N = 7, R = 6, D = 13 };
static const double EPS = 2.220446049250313e-16;

typedef struct { double q[N], rho[R], y[R], v[N]; double s; } point; /* s = 1 / (1 + |w|^2) */

static void lift(const point *p, const double *rho, double *v) { /* v = X (X^T X)^-1 rho */
  double wr = p->q[W] * rho[3] + p->q[W + 1] * rho[4] + p->q[W + 2] * rho[5];
  v[0] = wr * p->s;
  for (int i = 0; i < 3; i++) {
    v[W + i] = rho[i];
    v[Z + i] = p->q[W + i] * v[0] - rho[3 + i];
  }
}
static void at(point *p, const double *z) {
  memcpy(p->q, z, sizeof p->q);
  memcpy(p->rho, z + N, sizeof p->rho);
  const double *w = p->q + W;
  p->s = 1 / (1 + w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
  lift(p, p->rho, p->v);
  for (int i = 0; i < 3; i++) { p->y[i] = p->rho[i]; p->y[3 + i] = -p->v[Z + i]; }
}
static double energy(const point *p, double k, double c) {
  const double *q = p->q, *w = q + W, *z = q + Z;
  double t = 0, u = 0, quartic = z[0] * z[0] * z[1] * z[1];
  for (int i = 0; i < R; i++) t += p->rho[i] * p->y[i];
  for (int i = 0; i < N; i++) u += q[i] * q[i];
  for (int i = 0; i < 3; i++) quartic += w[i] * w[i] * z[i] * z[i];
  return 0.5 * (t + k * u + c * quartic);
}
static void gradient(const point *p, double k, double c, double *g) {
  const double *q = p->q, *w = q + W, *z = q + Z;
  g[0] = k * q[0];
  for (int i = 0; i < 3; i++) {
    g[W + i] = w[i] * (k + c * z[i] * z[i]) - p->v[0] * p->y[3 + i];
    g[Z + i] = z[i] * (k + c * w[i] * w[i]);
  }
  g[Z] += c * z[0] * z[1] * z[1];
  g[Z + 1] += c * z[0] * z[0] * z[1];
  memcpy(g + N, p->y, sizeof p->y);
}
static void apply(const point *p, const double *g, double *out) { /* Pi g */
  const double *w = p->q + W, *e = g + N, px = p->v[0];
  out[0] = w[0] * e[3] + w[1] * e[4] + w[2] * e[5];
  for (int i = 0; i < 3; i++) {
    out[W + i] = e[i];
    out[Z + i] = -e[3 + i];
    out[N + i] = -(g[W + i] + px * e[3 + i]);
    out[N + 3 + i] = px * e[i] - (w[i] * g[0] - g[Z + i]);
  }
}
static double dot(const double *a, const double *b, int n) {
  double t = 0;
  for (int i = 0; i < n; i++) t += a[i] * b[i];
  return t;
}
static void plus(double *value, double *low, double x) {
  double y = x + *low, s = *value + y, back = s - *value;
  *low = (*value - (s - back)) + (y - back);
  *value = s;
}
static void derived(const point *p, const double *d, double E, double h, double k, double c, double *g,
                    double *noise, double *scale) {
  gradient(p, k, c, g);
  double S = fabs(E) + fabs(dot(p->rho, p->y, R)), motion = dot(g, g, D) * dot(d, d, D);
  *noise = 4 * EPS * S * S * S / (S > 0 ? S * S + motion * 1e8 : 1);
  double G[R], kinetic = 0;
  for (int i = 0; i < 3; i++) { G[i] = 1; G[3 + i] = 1 + p->q[W + i] * p->q[W + i]; }
  for (int i = 0; i < R; i++) kinetic += (p->rho[i] * p->rho[i] + d[N + i] * d[N + i]) / G[i];
  double row[N] = {0};
  for (int i = 0; i < 3; i++) {
    row[0] += p->q[W + i] * p->q[W + i] / G[3 + i];
    row[W + i] = 1;
    row[Z + i] = 1 / G[3 + i];
  }
  for (int i = 0; i < N; i++) scale[i] = fabs(p->q[i]) + h * sqrt(kinetic * row[i]);
  for (int i = 0; i < R; i++) scale[N + i] = sqrt(kinetic * G[i]);
}

/* z: 13 numbers (q, rho), replaced by the final ones; the mean number of evaluations, or -1 */
double run(double *z, double h, double k, double c, long steps) {
  double low[D] = {0}, past[PAST][D], g0[D], noise, scale[D], d[D], weight[PAST];
  point p, m, e;
  at(&p, z);
  double E = energy(&p, k, c);
  gradient(&p, k, c, g0);
  apply(&p, g0, d);
  for (int i = 0; i < D; i++) d[i] *= h;
  for (int j = 0; j < PAST; j++) memcpy(past[j], d, sizeof d);
  double choose = PAST;
  for (int j = 0; j < PAST; j++) { weight[j] = j % 2 ? -choose : choose; choose = choose * (PAST - 1 - j) / (j + 2); }
  derived(&p, d, E, h, k, c, g0, &noise, scale);
  long evaluations = 0;
  for (long step = 0; step < steps; step++) {
    double x[D], size = 1, before = 1, inverse[D];
    int count = 0;
    for (int i = 0; i < D; i++) {
      x[i] = 0;
      for (int j = 0; j < PAST; j++) x[i] += weight[j] * past[j][i];
      inverse[i] = 1 / ((scale[i] > 0 ? scale[i] : 1) + fabs(x[i]));
    }
    do {
      double zm[D], z1[D], gm[D], g1[D], gbar[D], next[D], extra[N], change[R];
      for (int i = 0; i < D; i++) { zm[i] = z[i] + 0.5 * x[i]; z1[i] = z[i] + x[i]; }
      at(&m, zm);
      gradient(&m, k, c, gm);
      at(&e, z1);
      gradient(&e, k, c, g1);
      double gd = dot(gm, x, D), bend = (dot(g0, x, D) + dot(g1, x, D) - 2 * gd) / 6;
      double rest = energy(&e, k, c) - E - (gd + bend), square = dot(x, x, D);
      rest -= fmin(fmax(rest, -noise), noise);
      double factor = (bend + rest) / (square > 0 ? square : 1);
      for (int i = 0; i < D; i++) gbar[i] = gm[i] + factor * x[i];
      apply(&m, gbar, next);
      for (int i = 0; i < D; i++) next[i] *= h;
      for (int i = 0; i < R; i++) change[i] = next[N + i] - x[N + i];
      lift(&m, change, extra);
      for (int i = 0; i < N; i++) next[i] += h / 2 * extra[i];
      before = size;
      size = 0;
      for (int i = 0; i < D; i++) {
        size = fmax(size, fabs(next[i] - x[i]) * inverse[i]);
        x[i] = next[i];
      }
      count++;
    } while (count < 2 || (size > 2 * EPS && (size * size > EPS / 2 * before || size / 32 > EPS / 2) &&
                           size < before && count < 50));
    if (!(size <= 1e-12)) return -1;
    evaluations += count;
    for (int i = 0; i < D; i++) plus(z + i, low + i, x[i]);
    memmove(past[1], past[0], sizeof past - sizeof past[0]);
    memcpy(past[0], x, sizeof x);
    at(&p, z);
    derived(&p, x, E, h, k, c, g0, &noise, scale);
  }
  return (double)evaluations / (double)steps;
}
