package deploy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kardianos/service"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
)

// ErrNoManager is wrapped where the machine has no service manager that is known here.
var ErrNoManager = errors.New("no service manager that sluice knows")

// ErrNoUserManager is wrapped where systemd runs, but not for this user.
var ErrNoUserManager = errors.New("no systemd of your own runs")

// orderMost bounds how long an order to the service manager may take, a stop with all of its agents among them.
const orderMost = 3 * time.Minute

// Options says whose service it is.
type Options struct {
	System    bool   // the machine's; else the user's own
	Home      string // of the user
	ConfigDir string // of the user: where the file of the environment lies
	Program   string // the binary that the service runs
	Linger    bool   // see Made
}

// Service is the daemon as the service manager has it, installed or not.
type Service struct {
	opt     Options
	order   service.Service
	launchd bool
}

// program satisfies kardianos/service, which would run it on Windows; here the manager runs the daemon itself.
type program struct{}

func (program) Start(service.Service) error { return nil }
func (program) Stop(service.Service) error  { return nil }

// Open finds the service manager. The errors ErrNoManager and ErrNoUserManager say that there is none.
func Open(opt Options) (*Service, error) {
	s := &Service{opt: opt}
	switch platform := service.Platform(); platform {
	case "linux-systemd":
		if _, err := os.Stat("/run/systemd/system"); err != nil {
			return nil, fault.New("run `sluice daemon` under your own service manager",
				"systemd is not what started this machine: %w", ErrNoManager)
		}
	case "darwin-launchd":
		s.launchd = true
		if opt.System {
			return nil, fault.New("omit --system", "a service for the whole machine on macOS: %w", ErrNoManager)
		}
	default:
		return nil, fault.New("run `sluice daemon` under your own service manager", "%s runs this machine: %w", platform,
			ErrNoManager)
	}
	if !opt.System && !s.launchd {
		if err := reachUserManager(); err != nil {
			return nil, err
		}
	}
	order, err := service.New(program{}, &service.Config{Name: Name, Option: service.KeyValue{"UserService": !opt.System}})
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	s.order = order
	return s, nil
}

// reachUserManager sees to it that systemctl --user finds the user's manager: a shell of su or of cron has no
// XDG_RUNTIME_DIR, though the manager runs.
func reachUserManager() error {
	own := filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
	for _, dir := range []string{own, os.Getenv("XDG_RUNTIME_DIR")} { // that of sudo and su may be another user's
		if _, err := os.Stat(filepath.Join(dir, "systemd", "private")); filepath.IsAbs(dir) && err == nil {
			return os.Setenv("XDG_RUNTIME_DIR", dir)
		}
	}
	return fmt.Errorf("%w: log in as that user, not by su or sudo, or let it always run: `loginctl enable-linger`; on "+
		"a server use --system", ErrNoUserManager)
}

// File is the unit or property list that Install writes.
func (s *Service) File() string {
	switch {
	case s.launchd:
		return filepath.Join(s.opt.Home, "Library", "LaunchAgents", Name+".plist")
	case s.opt.System:
		return filepath.Join("/etc/systemd/system", Unit)
	}
	return filepath.Join(s.opt.Home, ".config", "systemd", "user", Unit)
}

// packaged returns the unit of the Debian package, "" where there is none.
func (s *Service) packaged() string {
	if !s.opt.System {
		return ""
	}
	for _, dir := range []string{"/usr/lib/systemd/system", "/lib/systemd/system"} {
		file := filepath.Join(dir, Unit)
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return ""
}

// Packaged reports whether the unit is the Debian package's.
func (s *Service) Packaged() bool { return s.packaged() != "" }

// EnvFile is the file of the service's environment; "" on macOS, where it stands in the property list.
func (s *Service) EnvFile() string {
	switch {
	case s.launchd:
		return ""
	case s.opt.System:
		return SystemEnv
	}
	return filepath.Join(s.opt.ConfigDir, "service.env")
}

// Installed is what Install did.
type Installed struct {
	File    string // the unit
	EnvFile string
	Fresh   bool // there was none before
	Changed bool // the unit is another than before: a service that runs goes on by the old one until it is restarted
}

// Install writes the unit and its environment and has the service begin with the login or with the
// machine. A second one brings both up to date. When it fails the unit is as it was before.
func (s *Service) Install(ctx context.Context, env map[string]string) (Installed, error) {
	done := Installed{File: s.File(), EnvFile: s.EnvFile()}
	if file := s.packaged(); file != "" {
		done.File = file
		return done, s.systemctl(ctx, "enable", Unit)
	}
	if s.opt.System {
		fresh, err := s.makeUser(ctx)
		if err != nil {
			return done, err
		}
		s.opt.Linger = fresh
	}
	before, err := os.ReadFile(done.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return done, fault.New("make the file readable", "service: %w", err)
	}
	done.Fresh = err != nil
	text, err := s.render(env, strings.Contains(string(before), "=made\n"))
	if err != nil {
		return done, fmt.Errorf("service: %w", err)
	}
	if err := s.writeEnv(env); err != nil {
		return done, err
	}
	done.Changed = text != string(before)
	if done.Changed {
		if err := put(done.File, text, s.mode()); err != nil {
			return done, err
		}
	}
	if s.launchd {
		return done, nil // it is loaded by Start; RunAtLoad has it begin with the login
	}
	err = errors.Join(s.systemctl(ctx, "daemon-reload"), s.systemctl(ctx, "enable", Unit))
	if err != nil {
		err = errors.Join(err, s.takeBack(ctx, done, before))
	}
	return done, err
}

// takeBack puts the unit back to what it was before.
func (s *Service) takeBack(ctx context.Context, done Installed, before []byte) error {
	var err error
	if done.Fresh {
		err = errors.Join(s.systemctl(ctx, "disable", Unit), os.Remove(done.File))
	} else {
		err = put(done.File, string(before), s.mode())
	}
	return errors.Join(err, s.systemctl(ctx, "daemon-reload"))
}

// mode: a property list has the environment in it, which may have keys.
func (s *Service) mode() fs.FileMode {
	if s.launchd {
		return 0o600
	}
	return 0o644
}

// render fills the template. made: what the install before brought about is still ours to take back.
func (s *Service) render(env map[string]string, made bool) (string, error) {
	v := Values{Program: s.opt.Program, EnvFile: s.EnvFile(), Home: s.opt.Home, Made: made || s.opt.Linger}
	switch {
	case s.launchd:
		for key, value := range env {
			v.Env = append(v.Env, key+"="+value)
		}
		v.Logs = filepath.Join(s.opt.Home, "Library", "Logs", Name)
		if err := os.MkdirAll(v.Logs, 0o700); err != nil {
			return "", err
		}
		return Plist(v)
	case s.opt.System:
		return SystemUnit(v)
	}
	return UserUnit(v)
}

func (s *Service) writeEnv(env map[string]string) error {
	file := s.EnvFile()
	if file == "" {
		return nil
	}
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.New("make the file readable", "service: its environment: %w", err)
	}
	if text := EnvFile(string(before), env); text != string(before) {
		return put(file, text, 0o600)
	}
	return nil
}

func put(file, text string, perm fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fault.New("make its parent folder writable", "service: %w", err)
	}
	if err := atomicfile.Write(file, []byte(text), perm); err != nil {
		return fault.New("make the folder writable, as root for --system", "service: %w", err)
	}
	return nil
}

// makeUser makes the machine's user where it is not there.
func (s *Service) makeUser(ctx context.Context) (made bool, err error) {
	if _, err := user.Lookup(Name); err == nil {
		return false, nil
	}
	out, err := command(ctx, "useradd", "--system", "--user-group", "--home-dir", SystemHome, "--create-home",
		"--shell", "/usr/sbin/nologin", Name)
	if err != nil {
		return false, fmt.Errorf("service: the user %s: %w: %s", Name, err, out)
	}
	return true, nil
}

// Uninstall stops the service with all that runs in it and removes what Install made; it tells what that was. What a
// package brought stays, and is not begun any more.
func (s *Service) Uninstall(ctx context.Context) (removed []string, err error) {
	if file := s.packaged(); file != "" {
		return nil, s.systemctl(ctx, "disable", "--now", Unit)
	}
	file := s.File()
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	if err := s.Stop(ctx); err != nil && !s.launchd { // launchd calls it an error where it was not loaded
		return nil, err
	}
	if err := s.order.Uninstall(); err != nil { // disables, removes and has the manager read again
		return nil, fmt.Errorf("service: %w", err)
	}
	// a failure of before is not remembered of what is gone
	_, _ = command(ctx, "systemctl", s.scoped("reset-failed", Unit)...)
	removed = append(removed, file)
	if env := s.EnvFile(); env != "" && os.Remove(env) == nil {
		removed = append(removed, env)
		if s.opt.System {
			_ = os.Remove(filepath.Dir(env)) // only where nothing else is in it
		}
	}
	if strings.Contains(string(text), "\nLinger=made\n") {
		if err := Linger(ctx, false); err != nil {
			return removed, err
		}
		removed = append(removed, "linger")
	}
	return removed, nil
}

// Start, Stop and Restart come back when it is done: for systemd that is when the daemon serves, or
// nothing of it is left.
func (s *Service) Start(ctx context.Context) error { return s.told(ctx, "start", s.order.Start()) }

// Restart has the daemon begin anew; agents go on.
func (s *Service) Restart(ctx context.Context) error {
	return s.told(ctx, "restart", s.order.Restart())
}

// Stop ends the daemon and all that runs in the service.
func (s *Service) Stop(ctx context.Context) error {
	var group string
	if !s.launchd {
		group = s.show(ctx, Unit)["ControlGroup"]
	}
	if err := s.told(ctx, "stop", s.order.Stop()); err != nil {
		return err
	}
	if group == "" {
		return nil
	}
	// Between a crash and the next start nothing of the unit runs at a stop: what the daemon left is ended here.
	return empty(ctx, groupDirs(group), graceMost)
}

// told adds to an order that failed what the service said last: the manager's own word is no more than that it failed.
func (s *Service) told(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if s.launchd {
		return fault.New("`sluice service status` shows more", "service: %s: %w", what, err)
	}
	scope := []string{"--unit", Name}
	if !s.opt.System {
		scope = []string{"--user-unit", Name}
	}
	said, jerr := command(ctx, "journalctl",
		append(scope, "--quiet", "--no-pager", "--output=cat", "--priority=warning", "--lines=1")...)
	if jerr != nil || said == "" {
		said = err.Error()
	}
	return fault.New(fmt.Sprintf("`sluice service status%s` shows its state", s.flag()), "service: it did not %s: %s",
		what, said)
}

func (s *Service) flag() string {
	if s.opt.System {
		return " --system"
	}
	return ""
}

func (s *Service) systemctl(ctx context.Context, args ...string) error {
	out, err := command(ctx, "systemctl", s.scoped(args...)...)
	if err != nil {
		return fmt.Errorf("service: systemctl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// scoped returns the arguments of systemctl for the service's manager.
func (s *Service) scoped(args ...string) []string {
	if s.opt.System {
		return append([]string{"--no-ask-password"}, args...)
	}
	return append([]string{"--user"}, args...)
}

// maxSaid is how much of a program's words goes into an error.
const maxSaid = 400

// command runs a program and gives what it said.
func command(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, orderMost)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC") // what they say is read
	out, err := cmd.CombinedOutput()
	said := strings.TrimSpace(string(out))
	if err != nil && len(said) > maxSaid {
		said = said[:maxSaid]
	}
	return said, err
}
