package engine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/tools/anchor"
	"sluice/tools/conform"
)

// mutant is one wrong reading of the law: a piece of a declaration's text and its replacement. Old
// must occur exactly once in the declaration, so that the table cannot rot.
type mutant struct{ name, decl, old, new string }

// documentTests read what a copy of the engine lacks. One of all the others, the random histories
// among them, has to fail.
const documentTests = "^(TestMutants|TestStatesAreDocumented|TestDesignCounts|TestMovesAreDocumented|TestOldFactsReplay|TestOldForgeFactsReplay|TestOnlyMovesWriteStates|TestPurity)$"

// how many a plain `go test` tries; SLUICE_MUTANTS=all tries all, SLUICE_MUTANTS=name that one
const mutantsShort = 1

// mutantSeeds are the histories of each test: few find most mutants, and in a tenth of the time.
func mutantSeeds() []string { return []string{"4", "50", "2000"} }

// TestMutants puts each wrong reading into a copy of the package and expects its tests to fail.
func TestMutants(t *testing.T) {
	which := os.Getenv("SLUICE_MUTANTS")
	if which == "" && testing.Short() {
		t.Skip("mutants take a few seconds each")
	}
	for i, m := range mutants() {
		changed, err := anchor.Apply(".", []anchor.Edit{{Decl: m.decl, Old: m.old, New: m.new}})
		if err != nil {
			t.Errorf("mutant %q: %v", m.name, err)
			continue
		}
		// A plain run tries the first.
		if which == "" && i%(1+len(mutants())/mutantsShort) != 0 || which != "" && which != "all" && which != m.name {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			conform.Rule(t, "8-semantics readings", "found by the tests: "+m.name)
			dir := mutate(t, changed)
			out, err := buildMutant(dir)
			if err != nil {
				t.Fatalf("the mutant does not build:\n%s", out)
			}
			for _, seeds := range mutantSeeds() {
				if out, err = runMutant(dir, seeds); err != nil {
					break
				}
			}
			switch {
			case err == nil:
				t.Errorf("not found: the tests pass with it")
			case !strings.Contains(out, "--- FAIL"):
				t.Errorf("the mutant does not run:\n%s", out)
			default:
				t.Logf("found: %s", firstFault(out))
			}
		})
	}
}

// mutate copies the package and what its tests need to a separate module, with the changed files.
func mutate(t *testing.T, changed map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), []byte("module sluice\n\ngo 1.26.0\n"))
	for from, to := range map[string]string{".": "engine", "../tools/oracle": "tools/oracle", "../tools/conform": "tools/conform", "../tools/printed": "tools/printed", "../internal/ids": "internal/ids",
		"../internal/text": "internal/text", "../tools/anchor": "tools/anchor"} {
		files, err := filepath.Glob(filepath.Join(from, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", from, err)
		}
		for _, f := range files {
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if with, ok := changed[filepath.Base(f)]; ok && from == "." {
				src = with
			}
			write(t, filepath.Join(dir, to, filepath.Base(f)), src)
		}
	}
	return dir
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// buildMutant builds the tests of a copy. Without the paths of its folder, and without cgo, what the mutant did not
// change is compiled once for all of them.
func buildMutant(dir string) (string, error) {
	cmd := exec.Command("go", "test", "-c", "-trimpath", "-ldflags=-s -w", "-vet=off", "-o", "mutant.test", "./engine")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0", "GOGC=400")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func runMutant(dir, seeds string) (string, error) {
	cmd := exec.Command(filepath.Join(dir, "mutant.test"), "-test.failfast", "-test.timeout=30m", "-test.run=^Test", "-test.skip="+documentTests)
	cmd.Dir = filepath.Join(dir, "engine")
	cmd.Env = append(os.Environ(), "SEEDS="+seeds, "SEED=", "SLUICE_MUTANT=1", "SLUICE_CONFORM=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// firstFault returns the line that shows how the mutant was found.
func firstFault(out string) string {
	for l := range strings.SplitSeq(out, "\n") {
		if strings.Contains(l, "_test.go:") {
			return fmt.Sprintf("%.200s", strings.TrimSpace(l))
		}
	}
	return strings.TrimSpace(strings.SplitN(out, "\n", 2)[0])
}
