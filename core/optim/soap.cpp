// SPDX-License-Identifier: Apache-2.0
// SOAP (Vyas et al., 2024, arXiv 2409.11321) as in its authors' code: Adam in the eigenbasis of
// Shampoo's matrices. For a gradient G of a parameter of two dimensions or more:
//   G' = UᵀGV;  m ← β1 m + (1−β1)G';  n ← β2 n + (1−β2)G'²
//   Δ = √(1−β2ᵗ)/(1−β1ᵗ) · U(m/(√n + ε))Vᵀ;  W ← (1 − lr·λ)(W − lr·Δ)
//   L ← βL + (1−β)GGᵀ;  R ← βR + (1−β)GᵀG
// U and V are eigenvectors of L and R, the largest first. Every so many steps one power iteration
// renews them, U ← QR(LU) with columns sorted by diag(UᵀLU), and m goes over to the new basis. The
// first gradient only makes L, R, U and V: no weight moves, and t counts from the second one. A
// side that is too long, and a parameter of one dimension, keeps its own basis.
//
// A prediction goes along the last step: Ŵ = W − s·lr·Δ.
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/optim/betas.h"
#include "core/optim/by_parameter.h"
#include "core/optim/momentum_by_delay.h"

namespace pipewright {
namespace {

/// A side of a matrix; its tables are the matrix of Shampoo and the basis.
enum Side : std::size_t { kRows, kColumns };

class Soap final : public MomentumByDelay<Soap> {
 public:
  explicit Soap(Options& options)
      : MomentumByDelay(options, 3e-3),
        betas_(read_betas(options, {0.95, 0.95},
                          "Decay factors of the running means of the gradient and of its square, "
                          "in the eigenbasis.")),
        shampoo_beta_(options.number(
            "shampoo_beta", -1, "Decay factor of Shampoo's matrices; -1 = the second of betas.",
            {-1, 0.9999999})),
        eps_(options.number("eps", 1e-8, "Number ε that is added to the denominator.",
                            kNotNegative)),
        decay_(options, 0.01,
               "Decoupled weight decay λ: weights shrink by the factor 1 − lr·λ after a step."),
        every_(options.integer("precondition_frequency", 10,
                               "Steps from one renewal of the eigenbasis to the next.", {1, 1e9})),
        longest_(options.integer(
            "max_precond_dim", 10000,
            "Longest side of a matrix that gets an eigenbasis; a longer one is left as it is.",
            {0, 1e9})) {
    read_by_delay(options, "the first of betas", betas_[0]);
    if (shampoo_beta_ < 0 && shampoo_beta_ != -1)
      options.problem("shampoo_beta",
                      concat("is ", shampoo_beta_, "; expected -1 or a number from 0 to below 1"));
    if (shampoo_beta_ < 0) shampoo_beta_ = betas_[1];
  }

  double& own_momentum() { return betas_[0]; }
  std::vector<std::string> slot_names(bool predicts) const override {
    if (predicts) return {"exp_avg", "exp_avg_sq", "last_step"};
    return {"exp_avg", "exp_avg_sq"};
  }
  int slots_predicted_from() const override { return 1; }

  std::vector<StateTable> tables(bool) const override {
    std::vector<StateTable> all;
    for (const char* const kind : {"shampoo", "basis"})
      for (const Side side : {kRows, kColumns})
        all.push_back(
            {concat(kind, side == kRows ? "_rows" : "_columns"),
             [this, side](const FlatLayout::Entry& entry) {
               const std::int64_t length = length_of(entry, side);
               return length > 0 ? std::optional(std::vector{length, length}) : std::nullopt;
             }});
    return all;
  }

  void step(const OptimizerStep& s) const override {
    const std::int64_t t = s.state.steps++;
    if (t == 0) begin(s);
    step_by_parameter(s, [&](const ParameterStep& one) {
      const Bases bases(s, one);
      if (t == 0) {
        observe(bases, one.gradient);
        for (const Side side : {kRows, kColumns})
          if (bases.has(side)) find_basis(bases, side);
        return one.weights;
      }
      const at::Tensor direction = direction_of(s, one, bases, static_cast<double>(t));
      if (s.state.slots.size() > 2) one.entry.view(s.state.slots[2]).copy_(direction);
      observe(bases, one.gradient);
      if (t % every_ == 0) renew(s, one, bases);
      return at::sub(one.weights, direction, s.lr).mul_(1 - s.lr * decay_.of(one.entry));
    });
  }

  void predict(const Prediction& p, const FlatRange& range) const override {
    predict_along(p, range, p.state.slots[2], decay_.most());
  }

 private:
  /// The tables of one parameter.
  struct Bases {
    Bases(const OptimizerStep& s, const ParameterStep& one) {
      for (const Side side : {kRows, kColumns}) {
        shampoo[side] = s.state.tables[side][one.index];
        basis[side] = s.state.tables[2 + side][one.index];
      }
    }
    bool has(Side side) const { return basis[side].defined(); }

    std::array<at::Tensor, 2> shampoo, basis;
  };

  /// The length of a parameter's side that gets a basis; 0: it gets none.
  std::int64_t length_of(const FlatLayout::Entry& entry, Side side) const {
    if (entry.shape.size() < 2) return 0;
    const std::int64_t rows = entry.shape[0];
    const std::int64_t length = side == kRows || rows == 0 ? rows : entry.size / rows;
    return length <= longest_ ? length : 0;
  }

  /// Parameters whose first gradient comes later keep their own basis until then.
  static void begin(const OptimizerStep& s) {
    for (const Side side : {kRows, kColumns})
      for (const at::Tensor& basis : s.state.tables[2 + side])
        if (basis.defined()) basis.fill_diagonal_(1);
  }

  static at::Tensor into_basis(const Bases& bases, at::Tensor matrix) {
    if (bases.has(kRows)) matrix = at::mm(bases.basis[kRows].t(), matrix);
    return bases.has(kColumns) ? at::mm(matrix, bases.basis[kColumns]) : matrix;
  }
  static at::Tensor out_of_basis(const Bases& bases, at::Tensor matrix) {
    if (bases.has(kRows)) matrix = at::mm(bases.basis[kRows], matrix);
    return bases.has(kColumns) ? at::mm(matrix, bases.basis[kColumns].t()) : matrix;
  }

  at::Tensor direction_of(const OptimizerStep& s, const ParameterStep& one, const Bases& bases,
                          double t) const {
    at::Tensor mean = one.entry.view(s.state.slots[0]), square = one.entry.view(s.state.slots[1]);
    const bool rotated = bases.has(kRows) || bases.has(kColumns);
    const at::Tensor gradient =
        rotated ? into_basis(bases, as_matrix(one.gradient)).reshape(one.entry.shape)
                : one.gradient;
    mean.mul_(betas_[0]).add_(gradient, 1 - betas_[0]);
    square.mul_(betas_[1]).addcmul_(gradient, gradient, 1 - betas_[1]);
    at::Tensor direction = mean / square.sqrt().add_(eps_);
    if (rotated) direction = out_of_basis(bases, as_matrix(direction)).reshape(one.entry.shape);
    const double correction1 = 1 - std::pow(betas_[0], t), correction2 = 1 - std::pow(betas_[1], t);
    return direction.mul(std::sqrt(correction2) / correction1);
  }

  /// Adds a gradient to Shampoo's matrices.
  void observe(const Bases& bases, const at::Tensor& gradient) const {
    if (gradient.dim() < 2) return;
    const at::Tensor matrix = as_matrix(gradient);
    if (bases.has(kRows)) bases.shampoo[kRows].lerp_(at::mm(matrix, matrix.t()), 1 - shampoo_beta_);
    if (bases.has(kColumns))
      bases.shampoo[kColumns].lerp_(at::mm(matrix.t(), matrix), 1 - shampoo_beta_);
  }

  static at::Tensor largest_first(const at::Tensor& values) {
    return at::argsort(values, /*stable=*/true, 0, /*descending=*/true);
  }
  /// The rows or columns of a matrix in that order, by operations that the meta device has, too.
  static at::Tensor in_order(const at::Tensor& matrix, Side of, const at::Tensor& order) {
    return of == kRows ? matrix.take_along_dim(order.unsqueeze(1), 0)
                       : matrix.take_along_dim(order.unsqueeze(0), 1);
  }

  static void find_basis(const Bases& bases, Side side) {
    constexpr double kAboveZero = 1e-30;  // as the authors add to the diagonal
    // In float32, kAboveZero would vanish beside larger numbers, and close eigenvalues be mixed up.
    at::Tensor matrix = bases.shampoo[side].to(at::kDouble, false, /*copy=*/true);
    matrix.diagonal().add_(kAboveZero);
    const auto [values, vectors] = at::linalg_eigh(matrix);
    bases.basis[side].copy_(in_order(vectors, kColumns, largest_first(values)));
  }

  /// One power iteration of both bases; the means go over to the new ones.
  void renew(const OptimizerStep& s, const ParameterStep& one, const Bases& bases) const {
    if (!bases.has(kRows) && !bases.has(kColumns)) return;
    at::Tensor mean = one.entry.view(s.state.slots[0]), square = one.entry.view(s.state.slots[1]);
    const at::Tensor original = out_of_basis(bases, as_matrix(mean));
    at::Tensor squares = as_matrix(square);
    for (const Side side : {kRows, kColumns}) {
      if (!bases.has(side)) continue;
      const at::Tensor turned = at::mm(bases.shampoo[side], bases.basis[side]);
      const at::Tensor lengths = (bases.basis[side] * turned).sum(0);
      const at::Tensor order = largest_first(lengths);
      squares = in_order(squares, side, order);
      bases.basis[side].copy_(std::get<0>(at::linalg_qr(in_order(turned, kColumns, order))));
    }
    square.copy_(squares.reshape(one.entry.shape));
    mean.copy_(into_basis(bases, original).reshape(one.entry.shape));
  }

  std::vector<double> betas_;
  double shampoo_beta_, eps_;
  WeightDecay decay_;
  std::int64_t every_, longest_;
};

}  // namespace

PIPEWRIGHT_OPTIMIZER(soap, Soap, "SOAP; Adam in the eigenbasis of Shampoo's matrices.")

}  // namespace pipewright
