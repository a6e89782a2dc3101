"""Entrypoints as people write them: sentence -> (text, exit code, lines). One table for bash alone and for a real Ray job."""

HEREDOC = """set -e
cat <<'END' > "$FOLDER/a.py"
import os, sys
print("quotes: ' \\" and a backslash \\\\ and $HOME stays")
sys.exit(int(os.environ["RANK"]))
END
python "$FOLDER/a.py"
echo done
"""
QUOTED = 'python -c "\nimport os\nfor i in range(2):\n    print(i)\n"'
LONGEST = ": " + "x" * (65536 - len(": ; echo end")) + "; echo end"

ENTRYPOINTS: dict[str, tuple[str, int, list[str]]] = {
    "both of two": ("echo a && echo b", 0, ["a", "b"]),
    "only the first of two, if it fails": ("false && echo b", 1, []),
    "the last one decides: it fails": ("echo a; false", 1, ["a"]),
    "the last one decides: it succeeds": ("false; echo a", 0, ["a"]),
    "an exit code of one's own": ("exit 42", 42, []),
    "a killed program": ("kill -KILL $$", 137, []),
    "a pipe": ("printf 'b\\na\\n' | sort | head -1", 0, ["a"]),
    "a pipe fails with its last command": ("false | true", 0, []),
    "a pipe that is told to fail with any": ("set -o pipefail; false | true", 1, []),
    "quotes in quotes": ("""echo "it's" 'a "b"' \\"c\\" """, 0, ["""it's a "b" "c\""""]),
    "several lines": ("echo a\n\n# a remark\necho b \\\n  c\n", 0, ["a", "b c"]),
    "a here-document": (HEREDOC, 0, ["""quotes: ' " and a backslash \\ and $HOME stays""", "done"]),
    "a program of several lines in quotes": (QUOTED, 0, ["0", "1"]),
    "variables are the worker's": ("echo $GREETING ${NOTHING:-none} '$GREETING' $RANK", 0, ["hello none $GREETING 0"]),
    "commands are run where the worker is": ('test "$(hostname)" = "$(uname -n)" && echo $(echo in)', 0, ["in"]),
    "a dollar is the shell's, not Kubernetes'": ("echo $(( 6 * 7 )) $$x | sed 's/[0-9]*x/x/'", 0, ["42 x"]),
    "Unicode": ("echo 'größer ≥ 模型 🚀'", 0, ["größer ≥ 模型 🚀"]),
    "a folder is changed": ("cd / && pwd", 0, ["/"]),
    "in the background and awaited": ("(sleep 0.1; echo late) & wait", 0, ["late"]),
    "50 kB": ("echo start; : " + "x" * 50_000 + "; echo end", 0, ["start", "end"]),
    "the longest": (LONGEST, 0, ["end"]),
    "an error of the shell": ("if true; then echo a", 2, ["bash: -c: line 2: syntax error: unexpected end of file"]),
}
