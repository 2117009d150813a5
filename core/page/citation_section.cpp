// SPDX-License-Identifier: Apache-2.0
// BibTeX of the program and of the papers whose schemes the runs have.
#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "core/base/text.h"
#include "core/page/sections.h"
#include "core/tables/run_keys.h"

namespace pipewright {
namespace {

struct Paper {
  std::string_view schemes;  ///< registered names, with blanks between them
  const char* entry;
};

constexpr std::array kPapers{
    Paper{"gpipe", R"(@inproceedings{huang2019gpipe,
  title = {{GPipe}: Efficient Training of Giant Neural Networks using Pipeline Parallelism},
  author = {Huang, Yanping and Cheng, Youlong and Bapna, Ankur and Firat, Orhan and Chen, Mia Xu and Chen, Dehao and Lee, HyoukJoong and Ngiam, Jiquan and Le, Quoc V. and Wu, Yonghui and Chen, Zhifeng},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2019}
})"},
    Paper{"pipedream one_f_one_b", R"(@inproceedings{narayanan2019pipedream,
  title = {{PipeDream}: Generalized Pipeline Parallelism for {DNN} Training},
  author = {Narayanan, Deepak and Harlap, Aaron and Phanishayee, Amar and Seshadri, Vivek and Devanur, Nikhil R. and Ganger, Gregory R. and Gibbons, Phillip B. and Zaharia, Matei},
  booktitle = {Proceedings of the 27th ACM Symposium on Operating Systems Principles},
  year = {2019}
})"},
    Paper{"pipedream_2bw", R"(@inproceedings{narayanan2021memory,
  title = {Memory-Efficient Pipeline-Parallel {DNN} Training},
  author = {Narayanan, Deepak and Phanishayee, Amar and Shi, Kaiyu and Chen, Xie and Zaharia, Matei},
  booktitle = {International Conference on Machine Learning},
  year = {2021}
})"},
    Paper{"interleaved", R"(@inproceedings{narayanan2021efficient,
  title = {Efficient Large-Scale Language Model Training on {GPU} Clusters Using {Megatron-LM}},
  author = {Narayanan, Deepak and Shoeybi, Mohammad and Casper, Jared and others},
  booktitle = {International Conference for High Performance Computing, Networking, Storage and Analysis},
  year = {2021}
})"},
    Paper{"zb_h1 zb_h2", R"(@inproceedings{qi2024zero,
  title = {Zero Bubble (Almost) Pipeline Parallelism},
  author = {Qi, Penghui and Wan, Xinyi and Huang, Guangxing and Lin, Min},
  booktitle = {International Conference on Learning Representations},
  year = {2024}
})"},
    Paper{"spectrain", R"(@misc{chen2018spectrain,
  title = {Efficient and Robust Parallel {DNN} Training through Model Parallelism on Multi-{GPU} Platform},
  author = {Chen, Chi-Chung and Yang, Chia-Lin and Cheng, Hsiang-Yun},
  eprint = {1809.02839},
  archiveprefix = {arXiv},
  year = {2018}
})"},
    Paper{"xpipe", R"(@misc{guan2019xpipe,
  title = {{XPipe}: Efficient Pipeline Model Parallelism for Multi-{GPU} {DNN} Training},
  author = {Guan, Lei and Yin, Wotao and Li, Dongsheng and Lu, Xicheng},
  eprint = {1911.04610},
  archiveprefix = {arXiv},
  year = {2019}
})"},
    Paper{"pipeoptim", R"(@misc{guan2023pipeoptim,
  title = {{PipeOptim}: Ensuring Effective {1F1B} Schedule with Optimizer-Dependent Weight Prediction},
  author = {Guan, Lei and Li, Dongsheng and others},
  eprint = {2312.00839},
  archiveprefix = {arXiv},
  year = {2023}
})"},
    Paper{"pipemare", R"(@inproceedings{yang2021pipemare,
  title = {{PipeMare}: Asynchronous Pipeline Parallel {DNN} Training},
  author = {Yang, Bowen and Zhang, Jian and Li, Jonathan and R{\'e}, Christopher and Aberger, Christopher R. and De Sa, Christopher},
  booktitle = {Proceedings of Machine Learning and Systems},
  year = {2021}
})"},
    Paper{"interlocking", R"(@article{gomez2022interlocking,
  title = {Interlocking Backpropagation: Improving depthwise model-parallelism},
  author = {Gomez, Aidan N. and Key, Oscar and Perlin, Kuba and Gou, Stephen and Frosst, Nick and Dean, Jeff and Gal, Yarin},
  journal = {Journal of Machine Learning Research},
  year = {2022}
})"}};

bool names_one_of(std::string_view schemes, const std::set<std::string>& used) {
  return std::ranges::any_of(split(schemes, ' '),
                             [&](const std::string& name) { return used.contains(name); });
}

}  // namespace

PageSection citation_section(const Report& report) {
  std::set<std::string> used;
  for (const RunRecord& run : report.runs)
    if (run.config.known()) used.insert(key_text(run, "scheme.name"));
  std::string text = concat(
      "@software{pipewright,\n  title = {Pipewright: a laboratory for pipeline-parallel "
      "training},\n"
      "  author = {{The Pipewright authors}},\n  version = {",
      report.version, "}",
      report.commit.empty() ? std::string() : concat(",\n  note = {commit ", report.commit, "}"),
      "\n}\n");
  for (const Paper& paper : kPapers)
    if (names_one_of(paper.schemes, used))
      text += concat("\n", std::string_view(paper.entry), "\n");
  std::string lines;
  for (const std::string& line : split(text, '\n')) lines += html_text(line) + "\n";
  return {.id = "cite",
          .title = "How to cite it",
          .body = concat("<pre class=\"bibtex\">", lines, "</pre>\n")};
}

}  // namespace pipewright
