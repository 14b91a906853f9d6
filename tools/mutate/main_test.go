package main

import (
	"os/exec"
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	const src = `package p

func f(n int) bool {
	if m := n; m > 1 {
		return n == 2
	}
	for n < 3 {
		n++
	}
	for {
		switch {
		case n > 4, n < 0:
			return true
		}
		switch n {
		case 5:
			return !f(6)
		}
	}
}
`
	const want = `package p; import mutant__ "sluice/tools/mutate/mutant"

func f(n int) bool {
	if m := n; mutant__.If(7, m > 1) {
		return mutant__.If(8, n == 2)
	}
	for mutant__.For(9, n < 3) {
		n++
	}
	for {
		switch {
		case mutant__.If(10, n > 4), mutant__.If(11, n < 0):
			return true
		}
		switch n {
		case 5:
			return mutant__.If(12, !f(6))
		}
	}
}
`
	out, lines, err := wrap("p.go", []byte(src), 7)
	if err != nil || string(out) != want || len(lines) != 6 || lines[5] != 17 {
		t.Errorf("%v, lines %v:\n%s", err, lines, out)
	}
}

func TestFindsWhatCannotFail(t *testing.T) {
	if exec.Command("unshare", append(apart(), "mount", "-o", "remount,ro,bind", "/")...).Run() != nil {
		t.Skip("no mount space can be made here")
	}
	out, err := exec.Command("go", "run", ".", "-v", "-survivors", "./testdata/sample").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{
		"TestSum: flip 1 of 2, tools/mutate/testdata/sample/sample.go:20\n",
		"4 tests; 5 conditions, 4 evaluated",
		"2: fails by a flip\n",
		"1: cannot fail\n    TestCannotFail (2 of 2 conditions flipped",
		"1: evaluates nothing of the module\n    TestOfNothing (0 of 0",
		"sample.go:12: evaluated by 1 tests, held by none\n",
		"sample.go:29: evaluated by no test\n",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}
