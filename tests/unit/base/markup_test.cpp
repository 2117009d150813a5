// SPDX-License-Identifier: Apache-2.0
#include "core/base/markup.h"

#include <gtest/gtest.h>

namespace pipewright {
namespace {

TEST(MarkdownText, LeavesOrdinaryNames) {
  for (const char* text :
       {"test_accuracy", "vgg_16, PD4", "model.name", "A & B", "a - b (3)", "x!"})
    EXPECT_EQ(markdown_text(text), text);
}

TEST(MarkdownText, EscapesWhatWouldAct) {
  EXPECT_EQ(markdown_text("a|b"), "a\\|b");
  EXPECT_EQ(markdown_text("a\\|b"), "a\\\\\\|b") << "a backslash must not take the bar's";
  EXPECT_EQ(markdown_text("<img src=x>"), "&lt;img src=x&gt;");
  EXPECT_EQ(markdown_text("&lt;&#60;"), "&amp;lt;&amp;#60;");
  EXPECT_EQ(markdown_text("![p](javascript:x)"), "!\\[p\\](javascript:x)");
  EXPECT_EQ(markdown_text("`c` *e* ~~s~~ $m$"), "\\`c\\` \\*e\\* \\~\\~s\\~\\~ \\$m\\$");
  EXPECT_EQ(markdown_text("_e_ a__b"), "\\_e\\_ a__b");
  EXPECT_EQ(markdown_text("a\nb"), "a\\\\nb");
}

TEST(LatexText, EscapesWhatWouldAct) {
  EXPECT_EQ(latex_text("50% & $x_1$ #{}"), "50\\% \\& \\$x\\_1\\$ \\#\\{\\}");
  EXPECT_EQ(latex_text("\\input{/etc/passwd}"), "\\textbackslash{}input\\{/etc/passwd\\}");
  EXPECT_EQ(latex_text("a^b~c<d"), "a\\textasciicircum{}b\\textasciitilde{}c\\textless{}d");
  EXPECT_EQ(latex_text("1 ± 2 − 3"), "1 $\\pm$ 2 $-$ 3");
  EXPECT_EQ(latex_text("a\n\nb"), "a\\textbackslash{}n\\textbackslash{}nb") << "no blank lines";
  EXPECT_EQ(latex_text("[2cm]"), "{}[2cm]") << "not a distance after the row before";
  EXPECT_EQ(latex_text("*"), "{}*");
}

TEST(CsvText, FollowsRfc4180) {
  EXPECT_EQ(csv_text("PD4"), "PD4");
  EXPECT_EQ(csv_text("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_text("say \"a\""), "\"say \"\"a\"\"\"");
  EXPECT_EQ(csv_text("a\r\nb"), "a\\r\\nb");
  EXPECT_EQ(csv_text(""), "");
}

TEST(CsvText, IsNoFormula) {
  EXPECT_EQ(csv_text("=1+1"), "'=1+1");
  EXPECT_EQ(csv_text("=HYPERLINK(\"x\",1)"), "\"'=HYPERLINK(\"\"x\"\",1)\"");
  EXPECT_EQ(csv_text("@SUM(A1)"), "'@SUM(A1)");
  EXPECT_EQ(csv_text("+cmd|x"), "'+cmd|x");
  EXPECT_EQ(csv_text("-2+3"), "'-2+3");
  EXPECT_EQ(csv_text("＝1"), "'＝1");
  EXPECT_EQ(csv_text("\t=1"), "\\t=1");
}

TEST(CsvText, KeepsTheSignOfNumbers) {
  for (const char* text : {"-0.5", "+3", "-1e-3", "-0", "0.25"}) EXPECT_EQ(csv_text(text), text);
}

TEST(XmlText, IsTextAndAttributeOfXml) {
  EXPECT_EQ(xml_text("<a b=\"c\" d='e'>&"), "&lt;a b=&quot;c&quot; d='e'&gt;&amp;");
  EXPECT_EQ(xml_text("\x01\x1b\ufffe\xff"), "\\x01\\x1b\\u{fffe}\\xff");
}

}  // namespace
}  // namespace pipewright
