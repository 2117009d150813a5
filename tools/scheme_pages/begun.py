# SPDX-License-Identifier: Apache-2.0
"""The page of a scheme that a person goes on with."""

PAGE = """# {name}

`{name}` … {about} Three sentences say what it is, which problem it solves, and at which cost.

## Weights

[Notation](README.md#notation): W(n) is a stage's weights after n updates; the gradient of mini-batch m is applied to W(m).

| with | a forward reads W of | steps predicted | a backward reads W of | steps predicted |
|---|---|---|---|---|
| the defaults | `…` | `0` | as the forward | |

## Costs

| with | idle in the steady state | copies of W on stage k | micro-batches that worker w holds |
|---|---|---|---|
| the defaults | `…` | `…` | `…` |

These tests hold it: `Suite.Test`.

## What the program says

```yaml
# {name}.yaml
name: {name}
dataset: {{name: digits}}
model: {{name: mlp, widths: [64, 64, 48, 32, 10]}}
pipeline: {{stages: 4}}
scheme: {{name: {name}}}
optimizer: {{name: sgd, lr: 0.03, momentum: 0.9}}
train: {{epochs: 5}}
```

<!-- program: 6 -->
<!-- end -->

## Published

<!-- published: {name} -->
<!-- end -->

## The authors' code

…

## Cite

```bibtex
…
```
"""


def begun(name, about):
    return PAGE.format(name=name, about=about)
