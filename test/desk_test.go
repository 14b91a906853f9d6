//go:build linux

package test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
)

const deskBus = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=SOCKET</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>`

// deskConf puts the bubble where a click finds it. A click opens the menu of the notice's buttons, which is a program of the
// person's own: here one that picks the line that has the text in the file "want".
const deskConf = `[global]
font = Sans 11
origin = top-left
offset = 12x12
width = (420, 420)
height = 400
notification_limit = 9
stack_duplicates = false
padding = 12
horizontal_padding = 14
frame_width = 2
mouse_left_click = do_action
dmenu = @WORK@/pick.sh
show_indicators = yes
[urgency_normal]
background = "#28323c"
foreground = "#e8eef2"
frame_color = "#4a7fa5"
[urgency_critical]
background = "#3a2326"
foreground = "#f4eaea"
frame_color = "#c4525a"
`

const deskPick = `#!/bin/sh
grep -m1 -F "$(cat "@WORK@/want")"
`

// desktop is a bus, a display and a real notification daemon of the test's own.
type desktop struct {
	*sandbox
	display string
	address string
}

// needs skips the test where programs are missing.
func needs(t *testing.T, programs ...[2]string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p[0]); err != nil {
			t.Skipf("needs: %s (apt-get install %s)", p[0], p[1])
		}
	}
}

// sessionBus starts a bus that lasts as long as the test.
func sessionBus(t *testing.T) (address string) {
	t.Helper()
	needs(t, [2]string{"dbus-daemon", "dbus-daemon"})
	dir, err := os.MkdirTemp("", "bus") // short: a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	conf := filepath.Join(dir, "conf")
	if err := os.WriteFile(conf, []byte(strings.Replace(deskBus, "SOCKET", filepath.Join(dir, "bus"), 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return firstLine(t, nil, "dbus-daemon", "--config-file="+conf, "--nofork", "--print-address=1")
}

// firstLine starts a program that lasts as long as the test, and returns its first line.
func firstLine(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s printed nothing: %v", name, err)
	}
	return strings.TrimSpace(line)
}

// newDesktop starts a desktop and makes a sandbox whose daemon belongs to it.
func newDesktop(t *testing.T, settings string) *desktop {
	t.Helper()
	needs(t, [2]string{"dunst", "dunst"}, [2]string{"dbus-send", "dbus-bin"}, [2]string{"Xvfb", "xvfb"}, [2]string{"xdotool", "xdotool"}, [2]string{"import", "imagemagick"})
	d := &desktop{sandbox: newSandbox(t, settings), address: sessionBus(t)}
	d.display = ":" + firstLine(t, nil, "Xvfb", "-displayfd", "1", "-screen", "0", "640x360x24", "-nolisten", "tcp")
	d.env = append(d.env, "DISPLAY="+d.display, "DBUS_SESSION_BUS_ADDRESS="+d.address)
	d.put("dunstrc", strings.ReplaceAll(deskConf, "@WORK@", d.work))
	d.put("pick.sh", strings.ReplaceAll(deskPick, "@WORK@", d.work))
	if err := os.Chmod(filepath.Join(d.work, "pick.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	dunst := exec.Command("dunst", "-conf", filepath.Join(d.work, "dunstrc"))
	dunst.Env = d.env
	var said bytes.Buffer
	dunst.Stdout, dunst.Stderr = &said, &said
	if err := dunst.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = dunst.Process.Kill()
		_ = dunst.Wait()
		if t.Failed() {
			t.Logf("dunst said: %s", said.String())
		}
	})
	eventually(t, "dunst is there", func() bool { return d.shown() == 0 })
	return d
}

// shown is how many notices stand on the screen; -1 where nobody tells.
func (d *desktop) shown() int {
	out, err := d.try("dunstctl", "count", "displayed")
	n, err2 := strconv.Atoi(strings.TrimSpace(out))
	if err != nil || err2 != nil {
		return -1
	}
	return n
}

// press clicks on the notice and picks a button, until what is waited for has come.
func (d *desktop) press(button, until string, came func() bool) {
	d.t.Helper()
	d.put("want", button)
	clicked := time.Time{}
	eventually(d.t, until, func() bool {
		if came() {
			return true
		}
		if time.Since(clicked) > 3*time.Second { // a click before the window was mapped goes astray
			clicked = time.Now()
			d.do("xdotool", "mousemove", "100", "60", "click", "1")
		}
		return false
	})
	d.do("xdotool", "mousemove", "600", "340")
}

// shot keeps what is on the screen, where SLUICE_SHOTS names a folder.
func (d *desktop) shot(name string) {
	if dir := os.Getenv("SLUICE_SHOTS"); dir != "" {
		d.do("import", "-window", "root", "-crop", "460x200+0+0", "-strip", "-colors", "64", filepath.Join(dir, name+".png"))
	}
}

// reload makes the daemon use other settings.
func (d *desktop) reload(settings string) {
	d.t.Helper()
	d.put("config/sluice/config.yaml", settings)
	c := daemon.NewClient(d.state())
	defer c.Close()
	if err := c.Reload(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

// facts of a kind that name a gate, as the daemon tells them.
func (d *desktop) facts(kind, gate string) []map[string]any {
	d.t.Helper()
	c := daemon.NewClient(d.state())
	defer c.Close()
	var out []map[string]any
	if err := c.Facts(d.t.Context(), "search-1", 0, false, func(l daemon.Line) error {
		var f map[string]any
		if json.Unmarshal(l.Fact, &f) == nil && f["kind"] == kind && f["gate"] == gate {
			out = append(out, f)
		}
		return nil
	}); err != nil {
		d.t.Fatal(err)
	}
	return out
}

func via(f map[string]any) string {
	by, _ := f["by"].(map[string]any)
	return fmt.Sprint(by["via"])
}

const deskSpec = `workflow: {id: search}
steps:
  - {id: index, name: the search index, run: "echo x >made; echo x >also; echo '{\"summary\": \"words are stemmed, stop words left out\"}' >$SLUICE_SIGNAL", signal: {type: sentinel_file}, outputs: [made], gate: index-ok}
  - {id: B, run: [true], gate: H}
gates:
  - {id: index-ok, reviewer: {level: human}, timeout: 24h, on_pass: {next_step: B}}
  - {id: H, reviewer: {level: notify, run: "true"}, veto_window: 20m, max_retries: 9, on_pass: {next_step: DONE}}
`

const deskTerminal = `printf '%s\n' "$PWD" "$@" >"@WORK@/terminal.part" && mv "@WORK@/terminal.part" "@WORK@/terminal"
`

func deskSettings(work string) string {
	return strings.Replace(quickSettings, "notify: {desktop: false}", "notify: {terminal: [sh, \""+work+"/term.sh\"]}", 1)
}

// TestButtons: the buttons of real notices, pressed with a real mouse, are answers; a notice leaves
// the screen when its round is over, whoever ended it.
func TestButtons(t *testing.T) {
	t.Parallel()
	d := newDesktop(t, deskSettings("@WORK@"))
	d.put("term.sh", strings.ReplaceAll(deskTerminal, "@WORK@", d.work))
	d.put("repo/.workflow/specs/search.yaml", deskSpec)
	d.commit()
	d.do(d.bin, "watch", "add")
	d.boot()
	eventually(t, "it serves", func() bool { _, ok := d.status(); return ok })
	d.do(d.bin, "start", "search")
	eventually(t, "the gate's notice is on the screen", func() bool { return d.shown() == 1 })
	d.shot("notice-human")
	terminal := filepath.Join(d.work, "terminal")
	d.press("Reject", "a terminal asks for the words", func() bool { _, err := os.Stat(terminal); return err == nil })
	got, _ := os.ReadFile(terminal)
	if want := "fail\nindex-ok\n--run\nsearch-1\n--round\n1\n"; !strings.HasPrefix(string(got), d.repo+"\n") || !strings.HasSuffix(string(got), want) {
		t.Errorf("the terminal was started with:\n%s", got)
	}
	if f := d.facts("round_failed", "index-ok"); len(f) > 0 {
		t.Errorf("the button alone rejected: %v", f)
	}
	d.press("Approve", "the approval is a fact", func() bool { return len(d.facts("round_passed", "index-ok")) == 1 })
	if f := d.facts("round_passed", "index-ok")[0]; via(f) != "desktop" {
		t.Errorf("approved by %v", f)
	}
	eventually(t, "the window is open", func() bool { return len(d.facts("window_opened", "H")) == 1 })
	eventually(t, "only its notice is on the screen", func() bool { return d.shown() == 1 })
	d.shot("notice-veto")
	d.press("Veto", "the veto is a fact", func() bool { return len(d.facts("round_failed", "H")) == 1 })
	if f := d.facts("round_failed", "H")[0]; via(f) != "desktop" || !strings.Contains(fmt.Sprint(f["feedback"]), "vetoed from the desktop") {
		t.Errorf("vetoed by %v", f)
	}
	eventually(t, "the next round's window is open", func() bool { return len(d.facts("window_opened", "H")) == 2 })
	eventually(t, "only its notice is on the screen", func() bool { return d.shown() == 1 })
	d.do(d.bin, "veto", "H", "-m", "once more")
	eventually(t, "the round after it has its window", func() bool { return len(d.facts("window_opened", "H")) == 3 })
	eventually(t, "a notice that was answered elsewhere is gone", func() bool { return d.shown() == 1 })
	d.reload(strings.Replace(deskSettings(d.work), "terminal:", "command: [\"true\"], terminal:", 1))
	d.do(d.bin, "veto", "H", "-m", "and again")
	eventually(t, "the next notice goes by the new settings", func() bool {
		f := d.facts("notice_tried", "H")
		return len(f) == 4 && strings.Contains(fmt.Sprint(f[3]["results"]), "command: shown")
	})
	eventually(t, "a notice of before they changed went with its round", func() bool { return d.shown() == 1 })
	d.reload(deskSettings(d.work))
	d.press("Veto", "a notice of before the settings changed still has its buttons", func() bool { return len(d.facts("round_failed", "H")) == 4 })
	eventually(t, "the next one is there", func() bool { return len(d.facts("notice_tried", "H")) == 5 && d.shown() == 1 })
	d.kill()
	eventually(t, "a dead daemon leaves no buttons behind", func() bool { return d.shown() == 0 })
	d.boot()
	eventually(t, "what waits is on the screen again", func() bool { return d.shown() == 1 })
	d.press("Veto", "the veto after the restart is a fact", func() bool { return len(d.facts("round_failed", "H")) == 5 })
	if f := d.facts("round_failed", "H")[4]; via(f) != "desktop" {
		t.Errorf("vetoed by %v", f)
	}
	for _, f := range d.facts("notice_tried", "H") {
		if !strings.Contains(fmt.Sprint(f["results"]), "desktop: shown") {
			t.Errorf("a notice: %v", f)
		}
	}
}
