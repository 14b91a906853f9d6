// Command imports imports the published workflows of Archon and takt, and prints for each what was
// taken over, whether it validates, and whether it runs with stubs. Each is fetched by git, or taken
// from a folder with a clone:
//
//	go run ./tools/imports [-repo FOLDER] [-run=false] [archon|takt ...]
//
// Nothing of them is kept.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// source is a repository with published workflows.
type source struct{ name, url, workflows, keep string }

func sources() []source {
	return []source{
		{"archon", "https://github.com/coleam00/Archon", ".archon/workflows/defaults", ".archon"},
		{"takt", "https://github.com/nrslib/takt", "builtins/en/workflows", "builtins/en"},
	}
}

// bar is the least percentage of all constructs of a source that is to be taken over.
const bar = 85

func main() {
	repo := flag.String("repo", "", "take the one named source from this clone, or bare clone, instead of the network")
	run := flag.Bool("run", true, "run each with stubs")
	flag.Parse()
	if err := all(*repo, *run, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "imports:", err)
		os.Exit(1)
	}
}

func all(repo string, run bool, names []string) error {
	tmp, err := os.MkdirTemp("", "sluice-imports-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	sluice := filepath.Join(tmp, "sluice")
	if out, err := exec.Command("go", "build", "-o", sluice, "./cmd/sluice").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %s", out)
	}
	if repo != "" && len(names) != 1 {
		return fmt.Errorf("-repo goes with one source: archon or takt")
	}
	bad := 0
	for _, s := range sources() {
		if len(names) > 0 && !strings.Contains(" "+strings.Join(names, " ")+" ", " "+s.name+" ") {
			continue
		}
		dir, err := fetch(tmp, repo, s)
		if err != nil {
			return err
		}
		bad += one(tmp, sluice, dir, s, run)
	}
	if bad > 0 {
		return fmt.Errorf("%d below the bar", bad)
	}
	return nil
}

// fetch brings the source's workflows into a folder.
func fetch(tmp, repo string, s source) (string, error) {
	dir := filepath.Join(tmp, s.name)
	from := s.url
	if repo != "" {
		from = repo
	}
	git := func(args ...string) error {
		out, err := exec.Command("git", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("git %s: %s", args[0], out)
		}
		return nil
	}
	if repo != "" { // also a clone from which large files are missing
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
		tar := filepath.Join(tmp, s.name+".tar")
		gitDir := repo
		if _, err := os.Stat(filepath.Join(repo, ".git")); err == nil {
			gitDir = filepath.Join(repo, ".git")
		}
		if err := git("--git-dir="+gitDir, "archive", "-o", tar, "HEAD", s.keep); err != nil {
			return "", err
		}
		out, err := exec.Command("tar", "-xf", tar, "-C", dir).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("tar: %s", out)
		}
		return dir, nil
	}
	return dir, git("clone", "--quiet", "--depth", "1", from, dir)
}

// report is what `sluice import --json` says.
type report struct {
	Workflow string
	Counts   struct {
		Taken        int `json:"taken_over"`
		Approximated int
		Left         int
	}
	Share  int      `json:"taken_over_percent"`
	Vars   []string `json:"required_vars"`
	Faults []struct {
		File      string
		Line, Col int
		Message   string
	}
}

// one imports the workflows of a source and returns how many fail.
func one(tmp, sluice, dir string, s source, run bool) (bad int) {
	files, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(s.workflows), "*.yaml"))
	fmt.Printf("%-44s %6s %6s %6s %6s  %-9s %s\n", s.name, "taken", "approx", "left", "%", "validates", "runs with --stub")
	all := report{}
	for i, f := range files {
		home := filepath.Join(tmp, fmt.Sprintf("%s-%d", s.name, i))
		r, err := importOne(sluice, f, home)
		if err != nil {
			fmt.Printf("%-44s %v\n", filepath.Base(f), err)
			bad++
			continue
		}
		all.Counts.Taken += r.Counts.Taken
		all.Counts.Approximated += r.Counts.Approximated
		all.Counts.Left += r.Counts.Left
		valid, runs := "yes", "-"
		if len(r.Faults) > 0 {
			valid = "no"
		} else if run {
			runs = stubRun(sluice, home, r)
			if runs != "completed" {
				bad++
			}
		}
		fmt.Printf("%-44s %6d %6d %6d %5d%%  %-9s %s\n", filepath.Base(f), r.Counts.Taken, r.Counts.Approximated,
			r.Counts.Left,
			r.Share, valid, runs)
		for _, x := range r.Faults {
			fmt.Printf("  %s:%d:%d: %s\n", x.File, x.Line, x.Col, x.Message)
		}
		_ = os.RemoveAll(home)
	}
	c := all.Counts
	share := 100 * c.Taken / max(c.Taken+c.Approximated+c.Left, 1)
	fmt.Printf("%-44s %6d %6d %6d %5d%%\n\n", fmt.Sprintf("all %d of %s", len(files), s.name), c.Taken, c.Approximated,
		c.Left, share)
	if share < bar || len(files) == 0 {
		bad++
	}
	return bad
}

// importOne imports a workflow into a new repo at home.
func importOne(sluice, file, home string) (r report, err error) {
	script := `mkdir -p "$1" && cd "$1" && git init -q -b main . && git -c user.name=x -c user.email=x@example.org ` +
		`commit -q --allow-empty -m start`
	if out, err := exec.Command("sh", "-c", script, "sh", home).CombinedOutput(); err != nil {
		return r, fmt.Errorf("git: %s", out)
	}
	cmd := exec.Command(sluice, "import", "--json", "--out", home, file)
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		if e, ok := err.(*exec.ExitError); ok {
			return r, fmt.Errorf("%s", e.Stderr)
		}
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}

// stubRun runs the workflow with stubs, passing each gate that asks a person, and says how it ended.
func stubRun(sluice, home string, r report) string {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	env := append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(home, ".state"), "XDG_CONFIG_HOME="+filepath.Join(home,
		".config"))
	args := []string{"-C", home, "run", r.Workflow, "--stub"}
	for _, v := range r.Vars {
		args = append(args, "--var", v+"=something")
	}
	cmd := exec.CommandContext(ctx, sluice, args...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr, cmd.Env = &said, &said, env
	if err := cmd.Start(); err != nil {
		return err.Error()
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			if strings.Contains(said.String(), "completed (stubbed") {
				return "completed"
			}
			lines := strings.Split(strings.TrimSpace(said.String()), "\n")
			return "NOT: " + lines[len(lines)-1]
		case <-tick.C:
			passAll(sluice, home, env)
		}
	}
}

// passAll passes the gates that ask a person.
func passAll(sluice, home string, env []string) {
	cmd := exec.Command(sluice, "-C", home, "inbox", "--json")
	cmd.Env = env
	out, err := cmd.Output()
	if err != nil {
		return
	}
	var inbox []struct {
		Kind   string
		Run    string
		Gate   string
		Schema struct {
			Properties map[string]struct{ Enum []any }
		} `json:"answer_schema"`
	}
	if json.Unmarshal(out, &inbox) != nil {
		return
	}
	for _, x := range inbox {
		args := []string{"-C", home, "pass", x.Gate, "--run", x.Run, "-m", "a trial"}
		for name, p := range x.Schema.Properties {
			value := "stub"
			if len(p.Enum) > 0 {
				value = fmt.Sprint(p.Enum[0])
			}
			args = append(args, "-a", name+"="+value)
		}
		pass := exec.Command(sluice, args...)
		pass.Env = env
		_ = pass.Run() // the next look tries again
	}
}
