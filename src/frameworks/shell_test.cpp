// SPDX-License-Identifier: Apache-2.0
#include "shell.hpp"

#include <algorithm>
#include <gtest/gtest.h>

namespace chokepoint::frameworks {
namespace {

std::string joined(const std::vector<Word>& words) {
  std::string out;
  for (const Word& word : words) out += (out.empty() ? "" : " ") + word.text;
  return out;
}

std::string last_command(std::string_view text) {
  const auto script = read_shell(text, "run.sh");
  return script && !script->commands.empty() ? joined(script->commands.back()) : "";
}

TEST(Shell, VariablesOfTheScriptAreReplaced) {
  EXPECT_EQ(last_command("TP=4\nrun --tp $TP --pp ${TP}x"), "run --tp 4 --pp 4x");
}

TEST(Shell, UnknownVariablesStay) {
  EXPECT_EQ(last_command("run --host $HOST $(hostname -s)"), "run --host $HOST $(hostname -s)");
}

TEST(Shell, DefaultsCountWhereNothingIsSet) {
  EXPECT_EQ(last_command("run ${A:-8} ${B:-$C}"), "run 8 $C");
  EXPECT_EQ(last_command("A=2\nrun ${A:-8}"), "run 2");
}

TEST(Shell, ArithmeticIsWorkedOut) {
  EXPECT_EQ(last_command("G=8\nN=$(( 4 * (1 + 1) ))\nrun $(($G*$N)) $((G / 3)) $((X * 2))"), "run 64 2 $((X * 2))");
}

TEST(Shell, LinesContinueAndTextInQuotesSplitsWhenItIsUsed) {
  EXPECT_EQ(last_command("ARGS=\" \\\n  --a 1 \\\n  --b 2\n\"\nrun \\\n  $ARGS --c"), "run --a 1 --b 2 --c");
}

TEST(Shell, ArraysKeepTheirWords) {
  EXPECT_EQ(last_command("A=(\n  --a 1  # first\n  --b \"x y\"\n)\nA+=(--c)\nrun \"${A[@]}\""),
            "run --a 1 --b x y --c");
}

TEST(Shell, RedirectionsAndPipesAreNoArguments) {
  const auto script = read_shell("run --a 1 2>&1 > log.txt | tee out &", "run.sh");
  ASSERT_TRUE(script);
  ASSERT_EQ(script->commands.size(), 2u);
  EXPECT_EQ(joined(script->commands[0]), "run --a 1");
}

TEST(Shell, WordsKeepTheLineTheyWereWrittenOn) {
  const auto script = read_shell("A=1\nARGS=\"--x 1\n  --y 2\"\nrun $ARGS", "run.sh");
  ASSERT_TRUE(script);
  const auto& words = script->commands.back();
  ASSERT_EQ(words.size(), 5u);
  EXPECT_EQ(words[1].pos.line, 2);
  EXPECT_EQ(words[3].text, "--y");
  EXPECT_EQ(words[3].pos.line, 3);
  EXPECT_EQ(words[3].pos.column, 3);
}

TEST(Shell, SlurmHeaderSetsItsVariables) { EXPECT_EQ(last_command("#SBATCH --nodes=4\nrun $SLURM_NNODES"), "run 4"); }

TEST(Shell, ABranchDoesNotReplaceWhatStandsOutside) {
  EXPECT_EQ(last_command("N=1\nif [ -n \"$X\" ]; then\n  N=2\n  M=3\nfi\nrun $N $M"), "run 1 3");
}

TEST(Shell, ABranchWhoseConditionIsKnownIsTakenOrLeft) {
  EXPECT_EQ(last_command("AC=${6:-sel}\nif [ $AC = full ]; then\n  O=\"--full\"\nelif [ $AC = sel ]; then\n  O=\"--sel\"\nelse\n  O=\"--none\"\nfi\nrun $O"), "run --sel");
  EXPECT_EQ(last_command("N=16\nX=1\nif [[ $N -gt 8 ]]; then X=2; fi\nrun $X"), "run 2");
  EXPECT_EQ(last_command("N=4\nX=1\nif [[ $N -gt 8 ]]; then X=2; else X=3; fi\nrun $X"), "run 3");
  EXPECT_EQ(last_command("D=false\nrun --a\nif [ \"$D\" == true ]; then\n  run --b\nfi"), "run --a");
  EXPECT_EQ(last_command("D=0\nX=1\n[ $D = 1 ] && X=2\nrun $X"), "run 1");
  EXPECT_EQ(last_command("D=0\nX=1\n[ $D = 1 ] || X=2\nrun $X"), "run 2");
  // Nested: what an outer branch leaves out stays out.
  EXPECT_EQ(last_command("A=0\nX=1\nif [ $A = 1 ]; then\n  if [ $A = 0 ]; then\n    X=2\n  fi\n  X=3\nfi\nrun $X"), "run 1");
}

TEST(Shell, BranchesThatTheScriptLeavesOpenAreTold) {
  const auto script = read_shell("if [ $SIZE = 8B ]; then\n  L=32\nelif [ $SIZE = 70B ]; then\n  L=80\nfi\nrun $L", "run.sh");
  ASSERT_TRUE(script);
  EXPECT_EQ(joined(script->commands.back()), "run 32");
  ASSERT_EQ(script->left_open.size(), 1u);
  EXPECT_EQ(script->left_open.front().name, "L");
  EXPECT_EQ(script->left_open.front().value, "32");
  const auto chosen = read_shell("case $SIZE in\n8B) L=32 ;;\n70B) L=80 ;;\nesac\nrun $L", "run.sh");
  ASSERT_TRUE(chosen);
  EXPECT_EQ(joined(chosen->commands.back()), "run 32");
  EXPECT_EQ(chosen->left_open.size(), 1u);
}

TEST(Shell, DefaultsAreKeptAndDeclaredArraysRead) {
  EXPECT_EQ(last_command(": \"${TP:=4}\"\ndeclare -a A=(\n  --x $TP\n  --y=2\n)\nrun \"${A[@]}\""), "run --x 4 --y=2");
}

TEST(Shell, ACommandThatIsNotRunIsOneWord) {
  const auto script = read_shell("M=$(hosts | head -n 1)\nsrun bash -c \"torchrun --addr $M --n 2 x.py\"", "run.sh");
  ASSERT_TRUE(script);
  const auto& words = script->commands.back();
  const auto text = [&](const char* wanted) {
    return std::count_if(words.begin(), words.end(), [&](const Word& w) { return w.text == wanted; });
  };
  EXPECT_EQ(text("$(hosts | head -n 1)"), 1);
  EXPECT_EQ(text("-n"), 0);
  EXPECT_EQ(last_command("A=2\nB=8\nrun $(expr $A \\* $B)"), "run 16");
}

TEST(Shell, TheScriptsOwnArgumentsAreNone) { EXPECT_EQ(last_command("run $@ --a 1"), "run --a 1"); }

TEST(Shell, HereDocumentsAreNoCommands) {
  EXPECT_EQ(last_command("cat > f <<EOF\n--x 1\nEOF\nrun --a 1"), "run --a 1");
}

TEST(Shell, AVariableThatDoublesItselfIsRefused) {
  std::string text = "A=0123456789\n";
  for (int i = 0; i < 40; ++i) text += "A=$A$A\n";
  EXPECT_FALSE(read_shell(text, "run.sh"));
}

TEST(Shell, NothingThatIsLeftOpenHangs) {
  for (const char* text :
       {"\"", "'", "$(", "${", "$((", "A=(", "<<", "\\", "`", "a\\", "$", ">", "2>", "&>", ")", "A+="}) {
    EXPECT_TRUE(read_shell(text, "run.sh")) << text;
  }
}

}  // namespace
}  // namespace chokepoint::frameworks
