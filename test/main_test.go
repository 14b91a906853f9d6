// Package test has the end-to-end tests: each runs the built sluice on real repos, as a user does.
//
// By theme, the beginning of a file's name says which:
//
//	script    the scripts of testdata/script; most of what commands do is tested there
//	watch     signals as files: every way to write one, folders that go, limits of the kernel
//	fault     crashes, full disks, failing system calls, damaged state, power cuts
//	held      what an agent in the sandbox can and cannot do
//	agents    the real agent programs against a loopback stub of the model
//	template  the shipped workflows; shapes and examples likewise
//	top, form, terminal  the screens, in a real terminal
//	web       the page, in a real browser
//	people, torture, storm, soak, flood  many at once, and long
//
// A test has a playground (commands on a repo) or a sandbox (a daemon and processes besides).
package test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"sluice/internal/serve"
)

// built is the binary that all tests of this package run.
type built struct {
	once sync.Once
	dir  string
	err  error
}

var theBinary built

// redraw writes pictures of documents anew.
var redraw = flag.Bool("redraw", false, "write the pictures of the README and the templates anew: look at them")

// waitMost is the limit of a wait: only a failing test reaches it, on a slow and busy machine too.
const waitMost = 3 * time.Minute

// waiting is how many parallel tests share a processor: they wait more than they compute.
const waiting = 3

func TestMain(m *testing.M) {
	inOtherTime()
	if code, ours := serve.Inner(os.Args[1:], os.Stdin); ours { // what is tested in this process starts it as its helper
		os.Exit(code)
	}
	flag.Parse()
	n := runtime.GOMAXPROCS(0)
	if p := flag.Lookup("test.parallel").Value; p.String() == strconv.Itoa(n) { // the default
		_ = p.Set(strconv.Itoa(waiting * n))
	}
	code := m.Run()
	theChromium.close()
	if theBinary.dir != "" {
		_ = os.RemoveAll(theBinary.dir)
	}
	os.Exit(code)
}

// binDirVar names the folder to the tests that this binary runs in a namespace of their own.
const binDirVar = "SLUICE_TEST_BIN"

// binDir returns the folder of `sluice` as it is shipped.
func binDir(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv(binDirVar); dir != "" {
		return dir
	}
	theBinary.once.Do(func() {
		if theBinary.dir, theBinary.err = os.MkdirTemp("", "sluice-bin-"); theBinary.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(theBinary.dir, "sluice"), "../cmd/sluice")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped; make demo has compiled most of it
		out, err := cmd.CombinedOutput()
		if err != nil {
			theBinary.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if theBinary.err != nil {
		t.Fatal(theBinary.err)
	}
	return theBinary.dir
}
