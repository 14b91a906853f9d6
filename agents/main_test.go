//go:build linux || darwin

package agents

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	shimArg = "agents-test-shim"
	waitFor = 2 * time.Minute // reached only by a failing test
)

// The test binary is also the shim, and a few commands that a shell cannot be.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case shimArg:
			os.Exit(ShimMain(os.Args[2:]))
		case "ensure":
			os.Exit(ensureMain(os.Args[2:]))
		case "warm":
			os.Exit(warmMain(os.Args[2:]))
		case "sweep":
			os.Exit(sweepMain())
		case keyringArg:
			os.Exit(keyringMain(os.Args[2]))
		case "leader":
			os.Exit(leaderMain())
		case "starve":
			os.Exit(starveMain(os.Args[2]))
		}
	}
	os.Exit(m.Run())
}

// ensureMain is a second daemon: it ensures a shell script and ends.
func ensureMain(args []string) int {
	_ = os.MkdirAll(args[1], 0o700) // the next error says what is wrong with it
	spec := Spec{Key: args[0], Dir: args[1], PidFile: args[2], Token: args[3], Cwd: args[1],
		Argv: []string{"sh", "-c", args[4]}, Env: []string{"PATH=/usr/bin:/bin", "SLUICE_TOKEN=" + args[3]}}
	p, err := newRunner().Ensure(context.Background(), spec)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(p.id.Pid)
	bufio.NewReader(os.Stdin).ReadString('\n')
	return 0
}

// leaderMain ends its first thread, and goes on in the others.
func leaderMain() int {
	runtime.LockOSThread()
	go func() {
		_ = os.WriteFile("up", []byte(strconv.Itoa(os.Getpid())), 0o600)
		for {
			time.Sleep(time.Second)
		}
	}()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0) // the thread, not the process
	return 1
}

// sweepMain is a daemon that was itself started within the launch it sweeps: it kills neither
// itself nor its other children.
func sweepMain() int {
	child := exec.Command("env", "-i", "sleep", "60")
	if err := child.Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	for !fileHas("/proc/"+strconv.Itoa(child.Process.Pid)+"/comm", "sleep")() {
		time.Sleep(time.Millisecond)
	}
	newRunner().Sweep(os.Getenv("SLUICE_TOKEN"))
	if err := child.Process.Signal(syscall.Signal(0)); err != nil || !runs(child.Process.Pid) {
		fmt.Println("its child was swept")
		return 1
	}
	child.Process.Kill()
	child.Wait()
	fmt.Println("well")
	return 0
}

// starveMain is a daemon without descriptors: it reports how often it took what it could not see
// for gone.
func starveMain(pidFile string) int {
	p, err := newRunner().Adopt(pidFile, "")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	// Made while there are descriptors: the runtime's first timer needs one.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	limit := syscall.Rlimit{Cur: 64, Max: 64}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		fmt.Println(err)
		return 1
	}
	var held []int
	for {
		fd, err := syscall.Open(os.DevNull, syscall.O_RDONLY, 0)
		if err != nil {
			break
		}
		held = append(held, fd)
	}
	// With any number of descriptors it may succeed or fail, but never be wrong.
	for n := 0; ; n++ {
		e, err := p.Wait(ctx)
		if err == nil && e.Lost {
			fmt.Printf("lost, with %d descriptors\n", n)
			return 1
		}
		if ctx.Err() != nil || len(held) == 0 {
			fmt.Println("well")
			return 0
		}
		syscall.Close(held[0])
		held = held[1:]
	}
}

func newRunner() *Runner {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return New(Options{Shim: shimCommand(self)})
}

// shimCommand prevents the race detector, if built in, from delaying a shim's end by a second.
func shimCommand(self string, args ...string) []string {
	return append([]string{"/usr/bin/env", "GORACE=atexit_sleep_ms=0", self, shimArg}, args...)
}

// noCgroups is a Runner as on a system without cgroups.
func noCgroups() *Runner {
	self, _ := os.Executable()
	return New(Options{Shim: shimCommand(self, NoCgroup)})
}

// testSpec is a launch of a shell script in its own folders; anything left of it at the end of the
// test is a failure.
func testSpec(t *testing.T, script string) Spec {
	t.Helper()
	root := t.TempDir()
	token := rand.Text()
	spec := Spec{
		Key:       "run-1/" + t.Name() + "#1.1",
		Dir:       filepath.Join(root, "attempt"),
		PidFile:   filepath.Join(root, "state", "launch.pid"),
		Argv:      []string{"sh", "-c", script},
		Env:       []string{"PATH=/usr/local/bin:/usr/bin:/bin", "SLUICE_TOKEN=" + token, "OUT=" + root},
		Cwd:       root,
		Token:     token,
		KillAfter: time.Second,
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitFor)
		defer cancel()
		if err := newRunner().Stop(ctx, spec); err != nil {
			t.Errorf("stop at the end: %v", err)
		}
		if left := withToken(token); len(left) > 0 {
			t.Errorf("left at the end: %v", left)
		}
	})
	return spec
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), waitFor)
	t.Cleanup(cancel)
	return ctx
}

func ensure(t *testing.T, r *Runner, spec Spec) *Proc {
	t.Helper()
	p, err := r.Ensure(testContext(t), spec)
	if err != nil {
		t.Fatalf("ensure: %v", err)
	}
	return p
}

func wait(t *testing.T, p *Proc) Exit {
	t.Helper()
	e, err := p.Wait(testContext(t))
	if err != nil {
		t.Fatalf("wait: %v", err)
	}
	return e
}

// eventually polls for a condition.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for until := time.Now().Add(waitFor); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("never: %s", what)
		}
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func fileHas(path, text string) func() bool {
	return func() bool {
		data, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(data), text)
	}
}

// withToken counts processes with a token, without the package's own code.
func withToken(token string) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ")
		if err == nil && strings.Contains(string(env), token) {
			cmd, _ := os.ReadFile(dir + "/cmdline")
			found = append(found, filepath.Base(dir)+":"+strings.ReplaceAll(string(cmd), "\x00", " "))
		}
	}
	return found
}

func runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func startOther(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}
