// SPDX-License-Identifier: Apache-2.0
/// PyTorch's SGD, Adam, AdamW, NAdam and Muon, their authors' Lion, Adan and SOAP, and what each
/// predicts s steps ahead.
///
/// Step n → n+1 with gradient g, learning rate η, decay λ; g' = g + λW^(n) (AdamW: g' = g):
///   SGD    v^(n+1) = μ v^(n) + (1 − τ) g',  v^(1) = g';  without momentum v^(n+1) = g'
///          W^(n+1) = W^(n) − η (g' + μ v^(n+1) if Nesterov, else v^(n+1))
///   Adam   m ← β₁ m + (1 − β₁) g',  u ← β₂ u + (1 − β₂) g'²,
///          W ← W − η m̂ / (√û + ε),  m̂ = m/(1 − β₁^(n+1)),  û = u/(1 − β₂^(n+1))
///   AdamW  W ← (1 − ηλ) W, then as Adam
///   Lion   W ← (1 − ηλ) W − η sign(β₁ m + (1 − β₁) g),  m ← β₂ m + (1 − β₂) g
///   NAdamW μ_t = β₁ (1 − 0.96^(tψ)/2), t = n+1;  m, u as Adam's;
///          W ← (1 − ηλ) W − η ((1 − μ_t)/(1 − μ_1⋯μ_t) g + μ_(t+1)/(1 − μ_1⋯μ_(t+1)) m) / (√û + ε)
///   Adan   d = g − g_before, 0 at first;  m ← β₁ m + (1 − β₁) g,  v ← β₂ v + (1 − β₂) d,
///          u ← β₃ u + (1 − β₃)(g + β₂ d)²,  W ← (W − η (m̂ + β₂ v̂) / (√û + ε)) / (1 + ηλ)
///   RMS    g' = g + λW, u ← α u + (1 − α) g'², b ← μ b + g'/(√u + ε), W ← W − η b (rmsprop)
///   SC     g' = g + λW, v ← μ v + g', W ← W − η (μᴰ v + (1 − μᴰ)/(1 − μ) g'), D the updates that g
///          is late, or a fixed number (spike_compensation)
///   Muon   of a weight: m ← μ m + (1 − μ) g,  O = NS((1 − μ) g + μ m) √max(1, rows/columns),
///          NS: X ← B/‖B‖, then five times X ← 3.4445 X + (−4.7750 XXᵀ + 2.0315 (XXᵀ)²) X;
///          W ← (1 − ηλ) W − η O; not Nesterov: NS(m); of a bias: AdamW's step with β₁ = 0.9, β₂ =
///          0.999
///   SOAP   of a weight, with L = R = 0 at first: L ← β₂ L + (1 − β₂) g gᵀ, R ← β₂ R + (1 − β₂)
///   gᵀg,
///          both behind the step. Step 0 moves nothing and takes for Q_L and Q_R the eigenvectors,
///          the largest first. Step t: G = Q_Lᵀ g Q_R, m ← β₁ m + (1 − β₁) G, u ← β₂ u + (1 − β₂)
///          G², Δ = √(1 − β₂ᵗ)/(1 − β₁ᵗ) Q_L (m/(√u + ε)) Q_Rᵀ, W ← (1 − ηλ)(W − ηΔ). Every tenth
///          step then sorts the columns of Q by the diagonal of QᵀLQ, with them u, and takes for Q
///          that of the QR decomposition of LQ; Q_L m Q_Rᵀ stays. Of a bias: the same without
///          bases.
///
/// With `biases_decay: false` λ is 0 for biases.
///
/// Prediction, Ŵ = W^(n) − η·(s·Δ), Δ from the state left by step n; Ŵ = W^(0) before the first
/// step:
///   buffer       Δ = v^(n) (Nesterov too), or m̂/(√û + ε) with bias corrections of n steps;
///                for AdamW Δ + λW^(n) if the option says so; NAdamW as AdamW; SC v; RMS b; Lion
///                sign(m); Adan (m̂ + β₂ v̂)/(√û + ε); Muon and SOAP the Δ of the last step
///   lookahead    SGD: forwards Δ = μ v^(n) + (1 − τ) g'_last, backwards Δ = μ v^(n)
///   geometric    SGD: s·Δ = Σ_{j=1..s} μ^j v^(n); Adam, AdamW: the s steps that gradients of 0
///                would make with u as it is: m ← β₁ m, bias corrections of n + j steps
#pragma once

#include "experiment.h"
#include "tensors.h"

namespace oracle {

/// A stage after `steps` optimizer steps of the whole run.
struct State {
  Tensors weights;
  int steps = 0;
  Tensors first;                         // v or m
  Tensors second;                        // u
  Tensors last;                          // g' of the last step
  Tensors third;                         // Adan's v
  Tensors moved;                         // Muon's and SOAP's Δ of the last step
  Tensors left, right;                   // SOAP's L and R
  Tensors left_basis, right_basis;       // SOAP's Q_L and Q_R
  double product = 1;                    // NAdamW's μ_1⋯μ_n
  Tensors gradient_square, step_square;  // of gradient rules
  Tensors update;                        // of a gradient rule: the optimizer's last one
  Tensors drift;  // PipeMare's δ, 0 before the first step; not part of the optimizer
};

enum class Pass { Forward, Backward };

State initial_state(Tensors weights);

State step(const OptimizerOptions& options, const State& state, const Tensors& gradient, double lr,
           int late = 0);

/// Ŵ `ahead` steps from `state`, whose next update has learning rate `lr`; or, if they are given,
/// each step at the rate of its own update.
Tensors predict(const OptimizerOptions& options, const SchemeOptions& scheme, const State& state,
                int ahead, Pass pass, double lr, const std::vector<double>& each = {});

}  // namespace oracle
