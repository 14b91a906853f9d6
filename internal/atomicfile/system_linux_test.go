package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/tools/conform"
)

// A lease has the system refuse each open that does not wait, for lease-break-time (45 seconds).
func TestOpenRegularWaitsForNoLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leased")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("kernel: no leases here: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := OpenRegular(filepath.Dir(path), filepath.Base(path), 10)
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, unix.EAGAIN) {
			t.Errorf("read: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it waits")
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	must(t, err)
	if _, _, err := OpenRegular(filepath.Dir(path), filepath.Base(path), 10); err != nil {
		t.Error(err)
	}
}

// A pipe would keep a plain open waiting for ever; what comes through it, or a device, is nobody's file.
func TestOpenRegularRefusesSpecialFiles(t *testing.T) {
	conform.Rule(t, "2-files signal 7", "a pipe holds up nobody")
	dir := t.TempDir()
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	must(t, err)
	defer func() { must(t, l.Close()) }()
	names := []string{"pipe", "socket"}
	if err := unix.Mknod(filepath.Join(dir, "zero"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))); err == nil {
		names = append(names, "zero")
	}
	for _, name := range names {
		done := make(chan error, 1)
		go func() {
			_, _, err := OpenRegular(dir, name, 10)
			done <- err
		}()
		select {
		case err := <-done:
			if !errors.Is(err, ErrNotRegular) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: blocked", name)
		}
		// The open alone, without the look before it, holds too.
		fd, err := openBeneath(dir, name)
		if err != nil {
			continue
		}
		st, err := statFd(fd)
		must(t, err)
		if st.Mode.IsRegular() {
			t.Errorf("%s: opened as a regular file", name)
		}
		must(t, closeFd(fd))
	}
}

func TestOpenRegularStaysBelow(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	must(t, os.MkdirAll(filepath.Join(in, "sub"), 0o700))
	must(t, os.Mkdir(out, 0o700))
	must(t, os.WriteFile(filepath.Join(out, "x"), []byte("secret"), 0o600))
	must(t, os.WriteFile(filepath.Join(in, "sub", "x"), []byte("mine"), 0o600))
	must(t, os.Symlink(out, filepath.Join(in, "link")))
	must(t, os.Symlink("sub", filepath.Join(in, "near")))
	must(t, os.Symlink(in, filepath.Join(dir, "whole")))
	if data, _, err := OpenRegular(in, "sub/x", 10); err != nil || string(data) != "mine" {
		t.Errorf("below: %q %v", data, err)
	}
	if data, _, err := OpenRegular(filepath.Join(dir, "whole", "sub"), "x", 10); err != nil || string(data) != "mine" {
		t.Errorf("a link above the folder: %q %v", data, err)
	}
	for _, c := range [][2]string{{in, "link/x"}, {in, "near/x"}, {in, "../out/x"}, {in, filepath.Join(out, "x")},
		{filepath.Join(dir, "whole"), "sub/x"}, {filepath.Join(in, "near"), "x"}} {
		if data, _, err := OpenRegular(c[0], c[1], 10); err == nil {
			t.Errorf("%q: read %q", c[1], data)
		}
	}
}

// A file swapped for a link between the look and the open is never read through.
func TestOpenRegularSwapRace(t *testing.T) {
	conform.Rule(t, "2-files signal 7", "a file swapped for a link is never read through")
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	in := filepath.Join(dir, "in")
	must(t, os.Mkdir(in, 0o700))
	file, link, name := filepath.Join(in, "file"), filepath.Join(in, "link"), filepath.Join(in, "x")
	must(t, os.WriteFile(file, []byte("mine"), 0o600))
	must(t, os.Symlink(secret, link))
	must(t, os.Symlink(secret, name))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		// Exchanges keep the name there at every moment, now one and now the other.
		for other := file; ; {
			select {
			case <-stop:
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, name, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
		}
	})
	mine, refused := 0, 0
	for range 20_000 {
		data, _, err := OpenRegular(in, "x", 10)
		switch {
		case err == nil && string(data) == "mine":
			mine++
		case err == nil:
			t.Fatalf("read %q", data)
		case errors.Is(err, ErrNotRegular):
			refused++
		default:
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	if mine == 0 || refused == 0 {
		t.Errorf("no race: %d read, %d refused", mine, refused)
	}
}

// A folder that is swapped for a link while files are moved out of it has no file of another folder moved.
func TestMoveFromSwapRace(t *testing.T) {
	const files = 2000
	base, outside := t.TempDir(), t.TempDir()
	in, link, to := filepath.Join(base, "in"), filepath.Join(base, "link"), filepath.Join(base, "to", "x")
	must(t, os.Mkdir(in, 0o700))
	must(t, os.Symlink(outside, link))
	for i := range files {
		for _, dir := range []string{in, outside} {
			must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
		}
	}
	if _, err := MoveFrom(base, link, "0", to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("from behind a link: %v", err)
	}
	stop, began := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(began) })
	var wg sync.WaitGroup
	wg.Go(func() {
		defer begin()
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := exchange(in, link); err != nil {
				t.Error(err)
				return
			}
			begin()
		}
	})
	<-began
	moved, refused := 0, 0
	for i := range files {
		switch _, err := MoveFrom(base, in, fmt.Sprint(i), to); {
		case err == nil:
			moved++
		case errors.Is(err, fs.ErrNotExist):
			refused++
		default:
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	left, err := os.ReadDir(outside)
	must(t, err)
	if moved == 0 || refused == 0 || len(left) != files {
		t.Errorf("%d moved, %d refused; %d of %d files of the other folder are left", moved, refused, len(left), files)
	}
}

// Between file systems a move is a copy that is whole before it counts.
func TestMoveAcrossFileSystems(t *testing.T) {
	const other = "/dev/shm"
	var a, b unix.Stat_t
	dir := t.TempDir()
	if unix.Stat(other, &a) != nil || unix.Stat(dir, &b) != nil || a.Dev == b.Dev {
		t.Skip("kernel: one file system only")
	}
	far, err := os.MkdirTemp(other, "atomicfile-")
	if err != nil {
		t.Skip("kernel: ", err)
	}
	t.Cleanup(func() { must(t, os.RemoveAll(far)) })
	must(t, os.WriteFile(filepath.Join(dir, "x"), []byte("text"), 0o640))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "l")))
	must(t, unix.Mkfifo(filepath.Join(dir, "p"), 0o600))
	for range 2 {
		must(t, os.WriteFile(filepath.Join(dir, "x"), []byte("text"), 0o640))
		got, err := Move(filepath.Join(dir, "x"), filepath.Join(far, "x"))
		must(t, err)
		info, err := os.Stat(got)
		must(t, err)
		if content(t, got) != "text" || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: %q %v", got, content(t, got), info.Mode())
		}
	}
	if _, err := Move(filepath.Join(dir, "l"), filepath.Join(far, "l")); err != nil {
		t.Error(err)
	}
	if _, err := Move(filepath.Join(dir, "p"), filepath.Join(far, "p")); !errors.Is(err, ErrNotRegular) {
		t.Errorf("pipe: %v", err)
	}
	only(t, dir, "p")
	only(t, far, "l", "x", "x.2")
}

func TestWriteWithoutRights(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o500))
	if os.Geteuid() == 0 {
		t.Skip("root writes anywhere")
	}
	if err := Write(filepath.Join(dir, "x"), nil, 0o600); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
}

// A folder's mount has a name of its own, which stays.
func TestMountID(t *testing.T) {
	dir := t.TempDir()
	if id := MountID(dir); id == "" || id != MountID(dir) || id == MountID("/proc") {
		t.Errorf("%q, then %q; /proc: %q", id, MountID(dir), MountID("/proc"))
	}
	if id := MountID(filepath.Join(dir, "no")); id != "" {
		t.Errorf("what is not there: %q", id)
	}
}
