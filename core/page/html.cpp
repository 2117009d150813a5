// SPDX-License-Identifier: Apache-2.0
#include "core/page/html.h"

#include "core/base/markup.h"
#include "core/base/printable.h"
#include "core/base/text.h"

namespace pipewright {

std::string html_text(std::string_view text, std::size_t most) {
  return xml_text(most == std::string_view::npos ? std::string(text) : printable(text, most));
}

HtmlTable::HtmlTable(std::string_view caption, const std::vector<std::string>& heads,
                     std::size_t names)
    : out_(concat("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"",
                  html_text(caption, 120), "\"><table><caption>", html_text(caption),
                  "</caption>\n<thead><tr>")),
      names_(names) {
  for (std::size_t i = 0; i < heads.size(); ++i)
    out_ += concat("<th scope=\"col\"", i < names_ ? "" : " class=\"n\"", ">", heads[i], "</th>");
  out_ += "</tr></thead>\n<tbody>\n";
}

void HtmlTable::row(const std::vector<std::string>& cells) {
  out_ += "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i)
    out_ += i < names_ ? concat("<th scope=\"row\">", cells[i], "</th>")
                       : concat("<td class=\"n\">", cells[i], "</td>");
  out_ += "</tr>\n";
}

std::string HtmlTable::html() && {
  return std::move(out_) + "</tbody></table></div>\n";
}

std::string html_details(std::string_view summary, std::string_view body, bool open) {
  return concat("<details", open ? " open" : "", "><summary>", html_text(summary), "</summary>\n",
                body, "</details>\n");
}

}  // namespace pipewright
