//go:build linux

package test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestClusterTry is a newcomer at docs/cluster-try.md: its blocks are typed one after another
// into one shell, and print what the page shows. They end with a run that landed after the machine that
// began it was killed.
func TestClusterTry(t *testing.T) {
	needsCage(t)
	t.Parallel()
	raw, err := os.ReadFile("../docs/cluster-try.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	for _, ports := range []string{"423", "623"} {
		page = regexp.MustCompile(`\b`+ports+`([1-3]|\$n)\b`).ReplaceAllString(page, freeDecade(t)+"$1")
	}
	sh := typing(t)
	blocks := regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(page, -1)
	for i, b := range blocks {
		switch {
		case b[1] == "": // what the block before prints
		case i+1 < len(blocks) && blocks[i+1][1] == "":
			sh.shows(b[2], blocks[i+1][2])
		default:
			sh.does(b[2])
		}
	}
	if !strings.Contains(sh.all, "landed on main as") {
		t.Errorf("nothing landed:\n%s", sh.all)
	}
	if left, err := os.ReadDir(sh.at("home")); err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool {
		return e.Name() == "sluice-try"
	}) {
		t.Errorf("the folder is left: %v, %v", left, err)
	}
	eventually(t, "nothing of it runs", func() bool { return len(processesOf(sh.work)) == 1 }) // the shell
}

// freeDecade returns what the numbers of free ports begin with: with 1, 2 or 3 after it, each is one.
func freeDecade(t *testing.T) string {
	t.Helper()
	for range 100 {
		decade, free := fmt.Sprint(1100+rand.IntN(2000)), true
		for _, last := range []string{"1", "2", "3"} {
			l, err := net.Listen("tcp", "127.0.0.1:"+decade+last)
			if free = free && err == nil; err == nil {
				l.Close()
			}
		}
		if free {
			return decade
		}
	}
	t.Fatal("no free ports")
	return ""
}

// typed is a shell into which a page's commands are typed, in a clone of sluice.
type typed struct {
	*sandbox
	in  io.Writer
	out string // the file of what they print
	all string // what they have printed
	n   int
}

func typing(t *testing.T) *typed {
	t.Helper()
	x := &typed{sandbox: newSandbox(t, "")}
	x.out = x.at("typed")
	bins := filepath.Join(x.at("home"), ".local/bin")
	if err := os.MkdirAll(bins, 0o755); err != nil {
		t.Fatal(err)
	}
	var env []string
	for _, v := range x.env {
		switch name, value, _ := strings.Cut(v, "="); name {
		case "SLUICE_CONFIG_SANDBOX_MODE":
		case "PATH":
			env = append(env, "PATH="+bins+string(os.PathListSeparator)+value)
		default:
			env = append(env, v)
		}
	}
	goes, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOSUMDB").Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, value := range strings.Split(strings.TrimSuffix(string(goes), "\n"), "\n") {
		env = append(env, []string{"GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOSUMDB"}[i]+"="+value)
	}
	out, err := os.Create(x.out)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command("sh")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = abs(".."), env, out, out
	if x.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x.last = cmd
	t.Cleanup(x.explains)
	return x
}

// explains logs what still runs after a failure, and how the logs end.
func (x *typed) explains() {
	if !x.t.Failed() {
		return
	}
	for _, pid := range processesOf(x.work) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		x.t.Logf("%d still runs: %s", pid, strings.ReplaceAll(string(line), "\x00", " "))
	}
	logs, _ := filepath.Glob(x.at("home/sluice-try/*.log"))
	for _, log := range logs {
		x.t.Logf("%s ends:\n%s", log, tailOf(log))
	}
}

// at returns the path of a file of the test's.
func (x *typed) at(name string) string { return filepath.Join(x.work, name) }

// does types a block, which must print no error.
func (x *typed) does(block string) {
	x.t.Helper()
	if said := x.types(block); regexp.MustCompile(`(?m)^(sluice|fatal|error|sh|go|nats-server): `).MatchString(said) {
		x.t.Fatalf("the page's\n%s\nprints\n%s", block, said)
	}
}

// types types a block and returns what it prints until its end.
func (x *typed) types(block string) string {
	x.t.Helper()
	x.n++
	end := fmt.Sprintf("the end of block %d\n", x.n)
	if _, err := io.WriteString(x.in, block+"printf '%s' '"+end+"'\n"); err != nil {
		x.t.Fatal(err)
	}
	var said string
	within(x.t, buildMost, "the end of\n"+block, func() bool {
		all, err := os.ReadFile(x.out)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			x.t.Fatal(err)
		}
		said = strings.TrimPrefix(string(all), x.all)
		return strings.HasSuffix(said, end)
	})
	x.all += said
	return strings.TrimSuffix(said, end)
}

// buildMost is how long a block may take: one builds the server.
const buildMost = 5 * time.Minute

// reads are blocks that change nothing: they are typed again until they print what the page shows.
var reads = regexp.MustCompile(`^(\./on \w+ (sluice (status|workers|inbox|audit)|cat)\b.*\n)+$`)

// shows types a block until it prints what the page shows.
func (x *typed) shows(block, shown string) {
	x.t.Helper()
	if !reads.MatchString(block) {
		x.t.Fatalf("the page shows what this prints, and it may be typed only once:\n%s", block)
	}
	want, said := pattern(shown), ""
	for until := time.Now().Add(2 * waitMost); !want.MatchString(said); time.Sleep(pollEvery) {
		if time.Now().After(until) {
			x.t.Fatalf("the page shows for\n%s\n%s\nand it prints\n%s", block, shown, said)
		}
		said = x.types(block)
	}
}

// pattern matches what a page shows with other names, ids, numbers and times.
func pattern(shown string) *regexp.Regexp {
	text := regexp.QuoteMeta(shown)
	for _, r := range [][2]string{
		{`/home/ann`, `/\S+/home`},
		{`ann \\\(pid`, `\S+ \(pid`},
		{`by ann `, `by \S+ `},
		{`[0-9a-f]{12,}`, `[0-9a-f]+`},
		{`\d+s\b`, `(\d+m )?\d+s`},
		{`pid \d+`, `pid \d+`},
		{`\d+ lines`, `\d+ lines`},
		{`record \d+`, `record \d+`},
		{`n[123] current`, `n[123] current`},
		{`/w[12]/`, `/w[12]/`},
		{` {2,}`, ` +`},
	} {
		text = regexp.MustCompile(r[0]).ReplaceAllLiteralString(text, r[1])
	}
	return regexp.MustCompile(`^` + text + `$`)
}
