//go:build linux

package test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"sluice/internal/setup"
)

// The scripts of testdata/script run the real binary on real repos. Beside testscript's own commands they have those of
// commands() below; each script has a HOME, settings and state of its own, and no process of it outlives it.

const (
	pollEvery = 30 * time.Millisecond
	pollShare = 4    // times as long as a command took is waited before it is asked again: a busy machine is asked less
	logShown  = 6000 // bytes of a background process's log in a failure
)

// quickSettings make all waits short, and have testdata/act.sh play every role. A script's repo may
// override them; `own FILE` replaces all but the times.
const quickSettings = quickTimes + `roles: {"*": {agent: acts}}
agents: {acts: {command: [sh, "ACTS"], prompt_via: file, env: [E2E_WORK]}}
`

const quickTimes = `notify: {desktop: false}
rescan: 300ms
settle: 150ms
grace: 300ms
linger: 500ms
kill_after: 1s
pr_poll: 3s
veto_window: 400ms
`

func TestScripts(t *testing.T) {
	holds(t)
	bin := binDir(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		Cmds:                commands(),
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup:               func(env *testscript.Env) error { return setUp(env, bin) },
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Getuid() == 0, nil
			}
			return false, fmt.Errorf("no condition %q", cond)
		},
	})
}

// stage is what one script has beside its files.
type stage struct {
	names []string // of its environment
	mu    sync.Mutex
	procs map[string]*background
}

// background is a process that the script goes on beside.
type background struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

type stageKey struct{}

func of(ts *testscript.TestScript) *stage { return ts.Value(stageKey{}).(*stage) }

// setUp gives a script its own HOME, settings, state and git.
func setUp(env *testscript.Env, bin string) error {
	s := &stage{procs: map[string]*background{}}
	env.Values[stageKey{}] = s
	work := env.WorkDir
	real, err := filepath.EvalSymlinks(work)
	if err != nil {
		return err
	}
	vars := append(isolated(real), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "TESTDATA="+abs("testdata"), "ROOT="+abs(".."))
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		env.Setenv(name, value)
	}
	for _, v := range env.Vars {
		name, _, _ := strings.Cut(v, "=")
		if !slices.Contains(s.names, name) {
			s.names = append(s.names, name)
		}
	}
	if err := furnish(real); err != nil {
		return err
	}
	env.Defer(func() {
		s.sweep(work)
		for _, name := range []string{"daemon", "run", "other"} {
			if p := s.procs[name]; p != nil {
				env.T().Log(name + ": " + tailOf(p.log))
			}
		}
	})
	return nil
}

func abs(path string) string {
	a, err := filepath.Abs(path)
	if err != nil {
		panic(err)
	}
	return a
}

// cmdOwn has the person's settings end with a file of the script's, in the place of the agents and roles of quickSettings.
func cmdOwn(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("WORK"), "config/sluice/config.yaml"), []byte(quickTimes+ts.ReadFile(args[0])), 0o644))
}

// isolated is an environment that shares nothing with the machine's user.
func isolated(work string) []string {
	env := []string{
		"HOME=" + filepath.Join(work, "home"), "XDG_STATE_HOME=" + filepath.Join(work, "state"), "XDG_CONFIG_HOME=" + filepath.Join(work, "config"),
		"SLUICE_CONFIG_SANDBOX_MODE=off", // the tests of the sandbox turn it on
		"GIT_CONFIG_NOSYSTEM=1", "NO_COLOR=1", "LC_ALL=C", "E2E_WORK=" + work,
	}
	if format := os.Getenv(refFormat); format != "" { // see CONTRIBUTING.md, "Another git"
		env = append(env, refFormat+"="+format)
	}
	return env
}

const refFormat = "GIT_DEFAULT_REF_FORMAT"

// furnish makes the folders of isolated, with quick settings.
func furnish(work string) error {
	for _, dir := range []string{"home", "state", "config/sluice"} {
		if err := os.MkdirAll(filepath.Join(work, dir), 0o755); err != nil {
			return err
		}
	}
	gitConfig := "[user]\n\tname = A Person\n\temail = person@example.org\n[init]\n\tdefaultBranch = main\n[commit]\n\tgpgsign = false\n"
	if err := os.WriteFile(filepath.Join(work, "home/.gitconfig"), []byte(gitConfig), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(work, "config/sluice/config.yaml"), []byte(strings.Replace(quickSettings, "ACTS", abs("testdata/act.sh"), 1)), 0o644)
}

// tailOf returns the end of a log. Of a long one it also has the beginning, where a crash says why.
func tailOf(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	if len(b) > logShown {
		b = slices.Concat(b[:logShown/4], []byte("\n…\n"), b[len(b)-logShown*3/4:])
	}
	return string(b)
}

// sweep ends what is left of a script's processes: those that it started, and those with its
// folder's name in their environment.
func (s *stage) sweep(work string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.procs {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	for range 20 {
		left := processesOf(work)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(pollEvery)
	}
}

// processesOf finds the processes that have E2E_WORK=work in their environment.
func processesOf(work string) []int {
	if real, err := filepath.EvalSymlinks(work); err == nil {
		work = real
	}
	var out []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if err == nil && pid != os.Getpid() && bytes.Contains(append(env, 0), []byte("E2E_WORK="+work+"\x00")) && !zombie(dir) {
			out = append(out, pid)
		}
	}
	return out
}

func zombie(dir string) bool {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	i := bytes.LastIndexByte(stat, ')')
	return err != nil || i < 0 || len(stat) < i+3 || stat[i+2] == 'Z'
}

// commands are those that scripts have beside testscript's.
//
//	repo [DIR]               makes DIR (repo) a git repo with all that lies in it committed, and goes there
//	served [DIR]             repo, and a daemon that serves it
//	[!] waitfor RE CMD…      runs CMD again and again until its output matches (does not match)
//	[!] waitfile FILE [RE]   waits until FILE is there (and matches); with ! until it is not, or does not match
//	exits CODE CMD…          CMD ends with this code
//	bg NAME CMD…             starts CMD; its output goes to $WORK/NAME.log
//	daemon [FLAG…]           starts `sluice daemon` as bg daemon, and waits until it serves
//	sig SIGNAL NAME          sends a signal to what bg started
//	ended NAME CODE          waits for its end: a code, or a signal's name
//	shown TEMPLATE           the run that the template's guide shows is what was just printed
//	alone                    waits until no process of this script is left but those of bg
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"repo": cmdRepo, "served": cmdServed, "waitfor": cmdWaitFor, "waitfile": cmdWaitFile, "exits": cmdExits,
		"bg": cmdBackground, "daemon": cmdDaemon, "sig": cmdSignal, "ended": cmdEnded, "alone": cmdAlone,
		"shown": cmdShown, "own": cmdOwn,
	}
}

// need fails the script where a command is used wrongly.
func need(ts *testscript.TestScript, ok bool, usage string) {
	if !ok {
		ts.Fatalf("usage: %s", usage)
	}
}

// command is a process with the script's environment as it is now.
func (s *stage) command(ts *testscript.TestScript, args []string) *exec.Cmd {
	name := args[0]
	if !strings.Contains(name, "/") {
		for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
			if st, err := os.Stat(filepath.Join(dir, name)); err == nil && !st.IsDir() {
				name = filepath.Join(dir, name)
				break
			}
		}
	}
	cmd := exec.Command(name, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, n := range s.names {
		cmd.Env = append(cmd.Env, n+"="+ts.Getenv(n))
	}
	cmd.Env = append(cmd.Env, "PWD="+cmd.Dir)
	return cmd
}

func cmdRepo(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) < 2, "repo [DIR]")
	dir := "repo"
	if len(args) == 1 {
		dir = args[0]
	}
	ts.Check(os.MkdirAll(ts.MkAbs(dir), 0o755))
	ts.Check(ts.Chdir(dir))
	if _, err := os.Stat(ts.MkAbs(".workflow")); err == nil {
		ts.Check(os.WriteFile(ts.MkAbs(".workflow/.gitignore"), []byte(setup.Ignored), 0o644))
	}
	for _, line := range []string{"init -q", "add -A", "commit -q --allow-empty -m start"} {
		ts.Check(ts.Exec("git", strings.Fields(line)...))
	}
}

func cmdServed(ts *testscript.TestScript, neg bool, args []string) {
	cmdRepo(ts, neg, args)
	ts.Check(ts.Exec("sluice", "watch", "add"))
	cmdDaemon(ts, false, nil)
}

func cmdWaitFor(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, len(args) > 1, "[!] waitfor RE CMD…")
	re, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	var out []byte
	for until := time.Now().Add(waitMost); time.Now().Before(until); {
		began := time.Now()
		out, err = of(ts).command(ts, args[1:]).CombinedOutput()
		if re.Match(out) != neg {
			_, _ = ts.Stdout().Write(out)
			return
		}
		time.Sleep(max(pollEvery, pollShare*time.Since(began)))
	}
	ts.Fatalf("never (wanted: %v): %s in %s, at last (%v):\n%s", !neg, args[0], strings.Join(args[1:], " "), err, out)
}

func cmdWaitFile(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, len(args) == 1 || len(args) == 2, "[!] waitfile FILE [RE]")
	re := regexp.MustCompile("")
	if len(args) == 2 {
		var err error
		re, err = regexp.Compile("(?m)" + args[1])
		ts.Check(err)
	}
	var data []byte
	for until := time.Now().Add(waitMost); time.Now().Before(until); time.Sleep(pollEvery) {
		_, err := os.Lstat(ts.MkAbs(args[0]))
		if err == nil && len(args) == 2 { // what is only waited for may be a pipe
			data, err = os.ReadFile(ts.MkAbs(args[0]))
		}
		if (err == nil && re.Match(data)) != neg {
			return
		}
	}
	ts.Fatalf("never (wanted: %v): %s; it has:\n%s", !neg, strings.Join(args, " matching "), data)
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) > 1, "exits CODE CMD…")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !asExit(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func asExit(err error, exit **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*exit = e
	return ok
}

func cmdBackground(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) > 1, "bg NAME CMD…")
	s := of(ts)
	if old := s.procs[args[0]]; old != nil {
		select {
		case <-old.done:
		default:
			ts.Fatalf("%s runs already", args[0])
		}
	}
	p := &background{cmd: s.command(ts, args[1:]), log: filepath.Join(ts.Getenv("WORK"), args[0]+".log"), done: make(chan struct{})}
	f, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	ts.Check(err)
	p.cmd.Stdout, p.cmd.Stderr = f, f
	ts.Check(p.cmd.Start())
	s.mu.Lock()
	s.procs[args[0]] = p
	s.mu.Unlock()
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // how it ended is in ProcessState
		f.Close()
	}()
}

func cmdDaemon(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg, "daemon [FLAG…]")
	log := filepath.Join(ts.Getenv("WORK"), "daemon.log")
	before, _ := os.ReadFile(log)
	cmdBackground(ts, false, append([]string{"daemon", "sluice", "daemon"}, args...))
	p := of(ts).procs["daemon"]
	for until := time.Now().Add(waitMost); time.Now().Before(until); time.Sleep(pollEvery) {
		now, _ := os.ReadFile(log)
		if bytes.Contains(now[len(before):], []byte("the daemon serves")) {
			return
		}
		select {
		case <-p.done:
			ts.Fatalf("the daemon ended: %v\n%s", p.cmd.ProcessState, now[len(before):])
		default:
		}
	}
	ts.Fatalf("the daemon does not serve")
}

func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 2, "sig SIGNAL NAME")
	sig, ok := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP,
		"STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT}[args[0]]
	p := of(ts).procs[args[1]]
	if !ok || p == nil {
		ts.Fatalf("no signal %s or no process %s", args[0], args[1])
	}
	ts.Check(p.cmd.Process.Signal(sig))
}

func cmdEnded(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 2, "ended NAME CODE")
	p := of(ts).procs[args[0]]
	if p == nil {
		ts.Fatalf("no process %s", args[0])
	}
	select {
	case <-p.done:
	case <-time.After(waitMost):
		ts.Fatalf("%s does not end", args[0])
	}
	got := strconv.Itoa(p.cmd.ProcessState.ExitCode())
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		got = ws.Signal().String()
	}
	if got != args[1] {
		ts.Fatalf("%s ended with %s, want %s", args[0], got, args[1])
	}
}

func cmdAlone(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 0, "alone")
	s := of(ts)
	var left []int
	for until := time.Now().Add(waitMost); time.Now().Before(until); time.Sleep(pollEvery) {
		left = slices.DeleteFunc(processesOf(ts.Getenv("WORK")), func(pid int) bool {
			for _, p := range s.procs {
				if p.cmd.Process.Pid == pid {
					return true
				}
			}
			return false
		})
		if len(left) == 0 {
			return
		}
	}
	for _, pid := range left {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		ts.Logf("left: %d %q", pid, line)
	}
	ts.Fatalf("%d processes are left", len(left))
}
