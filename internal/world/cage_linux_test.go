package world

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/agents/launch"
	"sluice/agents/program"
	"sluice/agents/sandbox"
	"sluice/gates/checkouts"
	"sluice/internal/settings"
	"sluice/internal/tree"
	"sluice/tools/conform"
)

// envSpec is a workflow of one command with variables of its own.
func envSpec(run string, env ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "workflow: {id: w}\nsteps:\n  - {id: A, run: %s, next_step: DONE, env: {", run)
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&b, "%s: %q, ", name, value)
	}
	b.WriteString("NONE: x}}\n")
	return b.String()
}

// TestEnvironmentStaysInside: what a step sets for its process counts inside only. The sandbox's own program, which works
// outside, would else load what an agent has left in the checkout, or write where the loader's variables say.
func TestEnvironmentStaysInside(t *testing.T) {
	conform.Rule(t, "4-trust held environment", "the sandbox's own program starts with nothing that a step sets")
	t.Run("debug output of the loader", func(t *testing.T) {
		outside := t.TempDir()
		b := held(t, envSpec("[sh, -c, env]", "LD_DEBUG=all", "LD_DEBUG_OUTPUT="+outside+"/debug"))
		b.runsClean(t, "LD_DEBUG=all")
		nothingIn(t, outside)
	})
	for name, variable := range map[string]string{"library before all others": "LD_PRELOAD=%s/evil.so", "auditor": "LD_AUDIT=%s/evil.so"} {
		t.Run(name, func(t *testing.T) {
			outside := t.TempDir()
			b := held(t, envSpec("[sh, -c, env]"))
			b.sharedObject("evil.so", filepath.Join(outside, "mark"))
			b.load(envSpec("[sh, -c, env]", fmt.Sprintf(variable, b.root)))
			b.runsClean(t, fmt.Sprintf(variable, b.root))
			nothingIn(t, outside)
		})
	}
	t.Run("folder of libraries", func(t *testing.T) {
		outside := t.TempDir()
		b := held(t, envSpec("[sh, -c, env]"))
		bwrap, err := exec.LookPath("bwrap")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.sh("ldd " + bwrap)) {
			if name := strings.Fields(line)[0]; strings.HasPrefix(name, "libcap") || strings.HasPrefix(name, "libselinux") {
				b.sharedObject(name, filepath.Join(outside, name))
			}
		}
		b.load(envSpec("[sh, -c, env]", "LD_LIBRARY_PATH="+b.root))
		b.runsClean(t, "LD_LIBRARY_PATH="+b.root)
		nothingIn(t, outside)
	})
}

// sharedObject makes a shared object that leaves a mark when it is loaded.
func (b *bench) sharedObject(name, mark string) {
	b.t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		b.t.Skip("needs: cc (apt-get install gcc libc6-dev)")
	}
	b.put("evil.c", fmt.Sprintf("#include <fcntl.h>\n__attribute__((constructor)) static void run(void) { open(%q, O_CREAT|O_WRONLY, 0600); }\nunsigned la_version(unsigned v) { return v; }\n", mark))
	b.sh("cc -shared -fPIC -o " + name + " evil.c")
}

// runsClean carries out step A; the file of its output has a line.
func (b *bench) runsClean(t *testing.T, line string) {
	t.Helper()
	ev := b.carry(b.stepJob("A", 1, 1))
	out := b.get(".workflow/runs/w-1/A.1/stdout")
	if ev.Exit.NotStarted != "" || !slices.Contains(strings.Split(out, "\n"), line) {
		t.Errorf("%+v: its environment lacks %s:\n%s%s", ev.Exit, line, out, b.get(".workflow/runs/w-1/A.1/stderr"))
	}
}

func nothingIn(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s was made, outside", e.Name())
	}
}

// TestEnvironmentIsNotShown: the arguments of a process are anybody's to read.
func TestEnvironmentIsNotShown(t *testing.T) {
	conform.Rule(t, "4-trust held environment", "neither what it is given nor more of it than an argument takes")
	many := []string{"WORD=t0p-s3cret-word", "LONG=" + strings.Repeat("x", 100<<10)}
	for i := range 500 {
		many = append(many, fmt.Sprintf("V%d=%d", i, i))
	}
	b := held(t, envSpec(`[sh, -c, "env; touch here; until [ -e go ]; do sleep 0.02; done"]`, many...))
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.runsClean(t, many[0])
	}()
	eventually(t, "it runs", func() bool { return b.has("here") })
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Fatal(lines, err)
	}
	for _, f := range lines {
		if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), "t0p-s3cret-word") {
			t.Errorf("%s: %.200q", f, data)
		}
	}
	b.put("go", "")
	<-done
	out := strings.Split(b.get(".workflow/runs/w-1/A.1/stdout"), "\n")
	for _, want := range many {
		if !slices.Contains(out, want) {
			t.Errorf("it lacks %.40s", want)
		}
	}
}

// TestSeen: of the machine a launch sees the system without its secrets, the tools on PATH, and what the settings name.
func TestSeen(t *testing.T) {
	conform.Rule(t, "4-trust seen", "nothing else is there, and nothing can be written to it")
	b := held(t, heldSpec)
	home := b.e.Variable("HOME")
	b.environ("PATH=/usr/local/bin:/usr/bin:/bin", "HOME="+home)
	here, err := os.Getwd() // a folder of the machine that nothing names
	if err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(filepath.Dir(here), "ids")
	b.settings.Sandbox.Read = []string{named}
	for _, f := range []string{".config/git/config", ".config/git/ignore", ".config/git/credentials", ".gitconfig", ".git-credentials", ".local/share/keyrings/login.keyring",
		".local/bin/mine", ".netrc", ".cargo/bin/cargo", ".cargo/credentials.toml", "go/bin/tool", ".password-store/x.gpg"} {
		putFile(t, filepath.Join(home, f), "#!/bin/sh\nexit 0\n", 0o755)
	}
	b.script("looks", fmt.Sprintf("cd %[1]s\nH=%[2]s\n", b.root, home)+`
see() { for f in "$@"; do if [ -r "$f" ] && head -c 1 "$f" >/dev/null 2>&1 || [ -d "$f" ]; then echo "sees $f"; else echo "not $f"; fi; done; }
see /usr/bin/env /bin/sh /etc/passwd /etc/hosts /dev/null /proc/self/status "$0"
see /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/ssl/private/* /etc/ssh/ssh_host_ed25519_key /etc/sudoers
see /root /boot /srv /lost+found /var/lib/dpkg /var/log /var/spool /home/* /run/dbus /run/systemd /sys/kernel
see "$H/.config/git/config" "$H/.config/git/ignore" "$H/.gitconfig" "$H/.local/bin/mine" "$H/.cargo/bin/cargo" "$H/go/bin/tool"
see "$H/.config/git/credentials" "$H/.git-credentials" "$H/.netrc" "$H/.local/share/keyrings" "$H/.local/share" "$H/.cargo/credentials.toml" "$H/.password-store"
`+fmt.Sprintf("see %s %s %s\nfor d in / /usr /etc /opt /home /var /run %s; do touch $d/planted 2>/dev/null && echo \"wrote $d\"; done; exit 0\n", named+"/ids.go", here, filepath.Dir(here)+"/tidy", named))
	if ev := b.carry(b.stepJob("A", 1, 1)); ev.Exit.NotStarted != "" {
		t.Fatalf("%+v", ev.Exit)
	}
	out := b.get(".workflow/runs/w-1/A.1/stdout")
	want := map[bool][]string{
		true: {"/usr/bin/env", "/bin/sh", "/etc/passwd", "/etc/hosts", "/proc/self/status", "$H/.config/git/config", "$H/.config/git/ignore", "$H/.gitconfig", "$H/.local/bin/mine", "$H/.cargo/bin/cargo", "$H/go/bin/tool", named + "/ids.go"},
		false: {"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/sudoers", "/root", "/boot", "/srv", "/var/lib/dpkg", "/var/log", "/run/dbus", "/sys/kernel", here, filepath.Dir(here) + "/tidy",
			"$H/.config/git/credentials", "$H/.git-credentials", "$H/.netrc", "$H/.local/share/keyrings", "$H/.local/share", "$H/.cargo/credentials.toml", "$H/.password-store"},
	}
	for seen, paths := range want {
		for _, p := range paths {
			p = strings.Replace(p, "$H", home, 1)
			word := map[bool]string{true: "sees ", false: "not "}[seen]
			if !slices.Contains(strings.Split(out, "\n"), word+p) {
				t.Errorf("want %q", word+p)
			}
		}
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "wrote") || strings.HasPrefix(line, "sees /etc/ssl/private/") || strings.HasPrefix(line, "sees /home/") && !strings.Contains(line, home) {
			t.Error(line)
		}
	}
	if t.Failed() {
		t.Log(out, b.get(".workflow/runs/w-1/A.1/stderr"))
	}
}

func putFile(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// TestToolsOfThePath: a tool on PATH is visible with its neighbours, wherever they are, and nothing
// more.
func TestToolsOfThePath(t *testing.T) {
	conform.Rule(t, "4-trust seen", "a toolchain on PATH works as a whole; a folder of mixed content shows its programs only")
	b := held(t, heldSpec)
	home, machine := b.e.Variable("HOME"), realPath(t, t.TempDir())
	tool := "#!/bin/sh\ncat \"$(dirname \"$0\")/../lib/word\"\n"
	putFile(t, filepath.Join(machine, "kit/bin/kit"), tool, 0o755)
	putFile(t, filepath.Join(machine, "kit/lib/word"), "kit works\n", 0o644)
	putFile(t, filepath.Join(home, "conda/bin/conda"), tool, 0o755)
	putFile(t, filepath.Join(home, "conda/lib/word"), "conda works\n", 0o644)
	putFile(t, filepath.Join(home, ".local/lib/word"), "local\n", 0o644)
	putFile(t, filepath.Join(home, ".local/share/keyrings/login"), "a secret\n", 0o644)
	putFile(t, filepath.Join(home, ".local/bin/x"), "#!/bin/sh\necho local works\n", 0o755)
	putFile(t, filepath.Join(home, "lib/word"), "a secret\n", 0o644)
	putFile(t, filepath.Join(home, "bin/y"), "#!/bin/sh\necho own works\n", 0o755)
	putFile(t, filepath.Join(machine, "repo/bin/z"), "#!/bin/sh\necho repo works\n", 0o755)
	putFile(t, filepath.Join(machine, "repo/lib/word"), "a secret\n", 0o644)
	putFile(t, filepath.Join(machine, "repo/.git/config"), "a secret\n", 0o644)
	putFile(t, filepath.Join(machine, "kit2/node_modules/.bin/.keep"), "", 0o644)
	putFile(t, filepath.Join(machine, "kit2/node_modules/pack/main"), "#!/bin/sh\necho pack works\n", 0o755)
	putFile(t, filepath.Join(machine, "kit2/.env"), "a secret\n", 0o644)
	if err := os.Symlink("../pack/main", filepath.Join(machine, "kit2/node_modules/.bin/pack")); err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{machine + "/kit/bin", home + "/conda/bin", home + "/.local/bin", home + "/bin", machine + "/repo/bin", machine + "/kit2/node_modules/.bin", os.Getenv("PATH")}, ":")
	b.environ("PATH="+path, "HOME="+home)
	b.script("uses", "kit; conda; x; y; z; pack; cd "+machine+"; cat kit2/.env repo/lib/word repo/.git/config "+home+"/lib/word "+home+"/.local/share/keyrings/login; exit 0\n")
	if ev := b.carry(b.stepJob("A", 1, 1)); ev.Exit.Code != 0 || ev.Exit.NotStarted != "" {
		t.Fatalf("%+v", ev.Exit)
	}
	out := b.get(".workflow/runs/w-1/A.1/stdout")
	wantText(t, "what they print", out, "kit works", "conda works", "local works", "own works", "repo works", "pack works")
	if strings.Contains(out, "secret") || t.Failed() {
		t.Errorf("%s\n%s", out, b.get(".workflow/runs/w-1/A.1/stderr"))
	}
}

// TestProgramThatIsNotSeen: the error is for people, and comes before the launch.
func TestProgramThatIsNotSeen(t *testing.T) {
	conform.Rule(t, "4-trust seen", "a program that is not is refused before the launch, with the folder to name")
	dir := realPath(t, t.TempDir())
	for _, d := range []string{"tools", "lang"} {
		putFile(t, filepath.Join(dir, d, "prog"), "#!/bin/sh\ncat \"$(dirname \"$0\")/secret\"\n", 0o755)
		putFile(t, filepath.Join(dir, d, "secret"), "a secret\n", 0o644)
	}
	for name, c := range map[string]struct {
		run, env string
		link     string
		read     bool
		want     string
	}{
		"by its path":                  {run: dir + "/tools/prog", want: "command " + dir + "/tools/prog: the sandbox does not show it: name " + dir + "/tools under sandbox.read in your own settings"},
		"by a PATH of the step's":      {run: "prog", env: "PATH=" + dir + "/tools", want: "sandbox.read"},
		"by a link in the checkout":    {run: "./made", link: dir + "/tools/prog", want: "command ./made: it leads to " + dir + "/tools/prog, which the sandbox does not show: name " + dir + "/tools under sandbox.read"},
		"by the first line":            {run: "./script", want: "its first line wants " + dir + "/lang/prog, which the sandbox does not show: name " + dir + "/lang under sandbox.read"},
		"by its path, which is named":  {run: dir + "/tools/prog", read: true},
		"by a link to what is named":   {run: "./made", link: dir + "/tools/prog", read: true},
		"by the first line, with that": {run: "./script", read: true},
	} {
		t.Run(name, func(t *testing.T) {
			env := c.env
			if env == "" {
				env = "NO=x"
			}
			b := held(t, envSpec("["+c.run+"]", env))
			b.put("script", "#! "+dir+"/lang/prog\n")
			b.sh("chmod +x script")
			if c.link != "" {
				b.sh("ln -s " + c.link + " made")
			}
			if c.read {
				b.settings.Sandbox.Read = []string{dir + "/tools", dir + "/lang"}
			}
			ev := b.carry(b.stepJob("A", 1, 1))
			if c.read && ev.Exit.NotStarted != "" || !c.read && !strings.Contains(ev.Exit.NotStarted, strings.ReplaceAll(c.want, "./", b.root+"/")) {
				t.Errorf("%+v", ev.Exit)
			}
			if out := filepath.Join(b.root, ".workflow/runs/w-1/A.1/stdout"); !c.read {
				if data, err := os.ReadFile(out); err == nil && strings.Contains(string(data), "secret") {
					t.Errorf("it ran: %s", data)
				}
			}
		})
	}
}

// TestAgentThatLiesAnywhere: a known agent's program may be anywhere, and is shown without its
// neighbours. A link that somebody put into the checkout is no such program.
func TestAgentThatLiesAnywhere(t *testing.T) {
	conform.Rule(t, "4-trust seen", "a known agent's program is seen wherever it lies, and nothing beside it")
	dir := realPath(t, t.TempDir())
	putFile(t, filepath.Join(dir, "prog"), "#!/bin/sh\ncat "+dir+"/secret\necho it ran\n", 0o755)
	putFile(t, filepath.Join(dir, "secret"), "a secret\n", 0o644)
	for command, want := range map[string]string{dir + "/prog": "", "./made": "it leads to " + dir + "/prog"} {
		t.Run(filepath.Base(command), func(t *testing.T) {
			b := held(t, heldSpec)
			b.sh("ln -s " + dir + "/prog made")
			b.settings.Agents["mine"] = settings.Agent{Command: []string{command}, Format: program.Claude}
			b.settings.Roles[settings.AnyRole] = settings.Role{Agent: []string{"mine"}}
			ev := b.carry(b.stepJob("A", 1, 1))
			data, _ := os.ReadFile(b.path(".workflow/runs/w-1/A.1/stdout"))
			if out := string(data); strings.Contains(out, "secret") || (want == "") != strings.Contains(out, "it ran") || !strings.Contains(ev.Exit.NotStarted, want) {
				t.Errorf("%+v\n%s", ev.Exit, out)
			}
		})
	}
}

// TestJudgedProgramThatIsNotSeen: the same holds for a program of the judged commit; what is in the
// checkout is visible in the agent's place.
func TestJudgedProgramThatIsNotSeen(t *testing.T) {
	conform.Rule(t, "4-trust seen", "a judge's program that is not is refused as well")
	b := held(t, heldSpec)
	seat, other := realPath(t, t.TempDir()), realPath(t, t.TempDir())
	for _, f := range []string{b.path("lang/prog"), seat + "/lang/prog", other + "/prog"} {
		putFile(t, f, "#!/bin/sh\n", 0o755)
	}
	putFile(t, seat+"/own", "#!"+b.path("lang/prog")+"\n", 0o755)
	putFile(t, seat+"/foreign", "#!"+other+"/prog\n", 0o755)
	p := launch.Process{Judged: launch.Judged{Begin: tree.Begin{Dir: b.root, Top: b.root}, Host: seat, Covers: true, Seat: &checkouts.Checkout{Top: seat}}}
	for command, want := range map[string]string{"./own": "", "./foreign": "its first line wants " + other + "/prog, which the sandbox does not show: name " + other + " under sandbox.read"} {
		plan := sandbox.Plan{Cwd: b.root, Home: b.e.Variable("HOME"), Shown: []sandbox.Mount{{Path: seat, At: b.root, Write: true}}}
		argv, err := b.e.Found([]string{command, "x"}, []string{"PATH=/usr/bin:/bin"}, p, &plan)
		switch {
		case want == "" && (err != nil || argv[0] != b.path(command) || argv[1] != "x"):
			t.Errorf("%s: %v %v", command, argv, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v %v", command, argv, err)
		}
	}
}
