# SPDX-License-Identifier: Apache-2.0
# What the page is made of: files of this folder, and what it shares with the HTML reports. An entry is NAME=PART+PART...,
# parts being files relative to this folder; NAME alone is that file.
set(CHOKEPOINT_REPORT ../src/report)
set(CHOKEPOINT_WEB_FILES
  index.html early.js app.css logo.svg app.js annotate.js api.js controls.js files.js results.js state.js studies.js terms.js whatif.js
  words.js page_ru.txt
  report.css=${CHOKEPOINT_REPORT}/page_style.css
  words_ru.txt=${CHOKEPOINT_REPORT}/words_ru.txt)
foreach(view prediction whatif wiring diagnose)
  list(APPEND CHOKEPOINT_WEB_FILES
    draw_${view}.js=draw_head.txt+${CHOKEPOINT_REPORT}/page_charts.js+${CHOKEPOINT_REPORT}/page_${view}.js+draw_tail.txt)
endforeach()
