// Command mutate finds tests that cannot fail, and conditions that no test holds.
//
//	go run ./tools/mutate [FLAG…] [PACKAGE…]
//
// Every condition of the module (if, for, the cases of a switch without a tag, comparisons that are returned) is wrapped
// in one build of a package's tests. Each test is run once, to see which conditions it evaluates; then these are flipped
// one after another, those that few tests evaluate first, until the test fails. A test that no flip fails is listed with
// the rows of docs/conformance.md that it holds. Conditions that are evaluated before any test begins are left out.
// Without packages it takes all but commands, whose tests are slow.
//
// A mutant may remove any file and kill any process. So each runs behind mounts and in a process space of its own: the
// machine's files are read-only, /tmp is its own.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// tooLong are tests of minutes: random histories, and mutants of their own.
const tooLong = `^(TestHistories|TestOracle|TestDeterministic|TestListOracle|TestListHistories|TestMutants|TestSimulation.*|TestTorture.*|TestSoak)$`

// helpers are for tests: a flip in them says nothing of the product.
const helpers = `/(test|tools/([a-z]+|conform/report|mutate/mutant))$`

type options struct {
	run, skip     *regexp.Regexp
	names         []string
	tries, width  int
	limit         time.Duration
	survivors, vv bool
}

type pkg struct {
	ImportPath, Name, Dir     string
	GoFiles                   []string
	TestGoFiles, XTestGoFiles []string
	Module                    struct{ Dir string }
}

func rootOf(pkgs []pkg) string { return pkgs[0].Module.Dir }

func main() {
	var o options
	run := flag.String("run", "", "only tests that match")
	skip := flag.String("skip", tooLong, "no tests that match")
	names := flag.String("names", "", "these tests, with a space between, in place of those that the package lists; TestScripts/basic is one")
	flag.IntVar(&o.tries, "tries", 25, "flips of one test, at most")
	flag.IntVar(&o.width, "j", 2, "tests at once")
	flag.DurationVar(&o.limit, "limit", 20*time.Second, "a test that is slower is not tried, a flip that is slower is found")
	flag.BoolVar(&o.survivors, "survivors", false, "list each condition of a package that none of its tests holds, too (slow)")
	flag.BoolVar(&o.vv, "v", false, "say what made each test fail, and after how many flips")
	flag.Parse()
	if o.run, o.skip = regexp.MustCompile(*run), regexp.MustCompile(*skip); *names != "" {
		o.names = strings.Fields(*names)
	}
	if err := mutate(o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func mutate(o options, patterns []string) error {
	if out, err := exec.Command("unshare", append(apart(), "mount", "-o", "remount,ro,bind", "/")...).CombinedOutput(); err != nil {
		return fmt.Errorf("unshare: %w: %s: a mutant may remove files, so none runs outside a mount space of its own: Linux, and user namespaces or root, are needed", err, out)
	}
	every := len(patterns) == 0
	if every {
		patterns = []string{"./..."}
	}
	tested, err := list(patterns)
	if err != nil {
		return err
	}
	tested = slices.DeleteFunc(tested, func(p pkg) bool { return every && p.Name == "main" })
	all, err := list(append([]string{"./..."}, patterns...))
	if err != nil {
		return err
	}
	help := regexp.MustCompile(helpers)
	all = slices.DeleteFunc(all, func(p pkg) bool { return help.MatchString(p.ImportPath) })
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	conds, overlay, err := instrument(all, dir)
	if err != nil {
		return err
	}
	fmt.Printf("%d conditions in %d packages\n", len(conds), len(all))
	rows := map[string][]*unit{}
	for i, p := range tested {
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 || help.MatchString(p.ImportPath) {
			continue
		}
		s := &suite{options: o, pkg: p, conds: conds, dir: filepath.Join(dir, fmt.Sprint("suite", i))}
		if err := s.build(overlay); err != nil {
			fmt.Printf("%s: not built: %v\n", p.ImportPath, err)
			continue
		}
		if err := s.judge(); err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		for _, u := range s.units {
			for _, row := range u.rows {
				rows[row] = append(rows[row], u)
			}
		}
		if err := os.RemoveAll(s.dir); err != nil {
			return err
		}
	}
	printRows(rows)
	return nil
}

// printRows names the rows whose holders were all tried, and none of them can fail.
func printRows(rows map[string][]*unit) {
	var bad []string
	for row, holders := range rows {
		if !slices.ContainsFunc(holders, func(u *unit) bool { return u.end != cannotFail }) {
			bad = append(bad, row)
		}
	}
	slices.Sort(bad)
	fmt.Printf("\n%d rows were seen; held only by tests that no flip fails: %d\n", len(rows), len(bad))
	for _, row := range bad {
		fmt.Printf("  %s: %s\n", row, rows[row][0].name)
	}
}

func list(patterns []string) (out []pkg, err error) {
	cmd := exec.Command("go", append([]string{"list", "-json"}, patterns...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	seen := map[string]bool{}
	for dec := json.NewDecoder(bytes.NewReader(raw)); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		if !seen[p.ImportPath] {
			seen[p.ImportPath] = true
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no packages")
	}
	return out, nil
}
