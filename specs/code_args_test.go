package specs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestNoValueInAShellText: an expression in an argument that is parsed as code is a fault at its
// place; in a separate argument it is not.
func TestNoValueInAShellText(t *testing.T) {
	const x = "${{vars.x}}"
	for argv, bad := range map[string]int{ // which argument is refused; -1: none
		"sh -c |echo " + x: 2, "/bin/sh -c |echo " + x: 2, "bash -lc |echo " + x: 2, "zsh -ec |echo " + x: 2, "dash -c -e |echo " + x: 3,
		"ksh93 -c |" + x: 2, "bash -o pipefail -c |echo " + x: 4, "bash -co pipefail |echo " + x: 3, "bash -c -- |echo " + x: 3, "bash +e -c |" + x: 3,
		"bash --rcfile f -c |" + x: 4, "env sh -c |echo " + x: 3, "env A=b sh -c |echo " + x: 4, "timeout 9 bash -c |" + x: 4, "busybox sh -c |" + x: 3,
		"find . -exec sh -c |" + x: 5, "env |-Ssh -c " + x: 1, "env -S |sh -c " + x: 2, "env |--split-string=a " + x: 1, "su me -c |echo " + x: 3, "flock f -c |echo " + x: 3,
		"python3 -c |print(" + x: 2, "python3.12 |-cprint(" + x: 1, "python -W ignore -Ic |print(" + x: 4, "node -e |" + x: 2, "node --eval |" + x: 2, "node |--eval=" + x: 1,
		"node -pe |" + x: 2, "perl -ne |print " + x: 2, "perl |-eprint " + x: 1, "perl -MList::Util=reduce -e |" + x: 3, "ruby -rjson -e |" + x: 3, "php -r |" + x: 2, "lua -e |" + x: 2,
		"${{vars.x}} -c |" + x: 2, "pwsh -Command |" + x: 2, "node -r m -e |" + x: 4,
		"sh -c |echo \"$1\"|x|" + x: -1, "bash run.sh -c |" + x: -1, "sh ./run.sh |" + x: -1, "python3 -m mod -c |" + x: -1, "python3 run.py -c |" + x: -1,
		"echo |-c|" + x: -1, "make |A=" + x: -1, "env |A=" + x + "| make": -1, "perl -MList::Util=e |" + x: -1, "node run.js -e |" + x: -1, "env A=b make -S |x": -1,
	} {
		head, rest, _ := strings.Cut(argv, "|")
		words := append(strings.Fields(head), strings.Split(rest, "|")...)
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", "''") + "'"
		}
		text := "workflow: {id: w, vars: {x: {default: sh}}}\nsteps:\n  - {id: a, next_step: DONE, run: [" + strings.Join(quoted, ", ") + "]}\n"
		_, faults := Load("w.yaml", []byte(text))
		col := 0
		if bad >= 0 {
			col = strings.Index(strings.Split(text, "\n")[2], "[") + 2
			for _, q := range quoted[:bad] {
				col += len(q) + 2
			}
		}
		want := fmt.Sprintf("w.yaml:3:%d: step a: run: ${{ }} has no place in what", col)
		got := slices.ContainsFunc(faults, func(f Fault) bool { return strings.HasPrefix(f.Error(), want) })
		if got != (bad >= 0) || bad < 0 && len(faults) > 0 || bad >= 0 && len(faults) != 1 {
			t.Errorf("%s: %v; want %q", argv, faults, want)
		}
	}
}

// TestNoValueInAShellTextAnywhere: the same wherever a command is allowed.
func TestNoValueInAShellTextAnywhere(t *testing.T) {
	const cmd = `{run: [sh, -c, "test ${{steps.a.answer.n}} = 1"]}`
	for name, at := range map[string]string{
		"a criterion": "success_criterion: " + cmd, "criteria": "success_criterion: [" + cmd + "]", "a hook": "hooks: {after_step: [sh, -c, 'x ${{run.id}}']}",
	} {
		text := "workflow: {id: w}\nsteps:\n  - {id: a, run: [x], answer: {n: integer}, next_step: DONE, " + at + "}\n"
		if strings.Contains(at, "hooks") {
			text = "workflow: {id: w, " + at + "}\nsteps:\n  - {id: a, run: [x], next_step: DONE}\n"
		}
		_, faults := Load("w.yaml", []byte(text))
		if !slices.ContainsFunc(faults, func(f Fault) bool { return strings.Contains(f.Error(), "has no place in what") }) {
			t.Errorf("%s: %v", name, faults)
		}
	}
}
