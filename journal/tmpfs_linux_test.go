package journal

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"sluice/tools/conform"
)

// mount mounts a small tmpfs on a new folder.
func mount(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skip("kernel: mounting is not permitted")
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// A really full disk: the journal stalls, stays whole, and continues when a file is removed;
// everything acknowledged is there.
func TestRealFullDisk(t *testing.T) {
	conform.Rule(t, "2-files journal full disk", "on a real full disk")
	dir := mount(t, "size=128k")
	hog := filepath.Join(dir, "hog")
	if err := os.WriteFile(hog, make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	l := mustOpen(t, dir, nil)
	n, stalls := 0, 0
	for n < 300 {
		_, _, err := l.Append(entry(n))
		if err == nil {
			n++
			continue
		}
		if !errors.Is(err, ErrStalled) || !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		if rep, err := Verify(dir, Options{}); err != nil || rep.Records != int64(n) || rep.PartialBytes != 0 {
			t.Fatal(rep, err)
		}
		if stalls++; stalls == 5 {
			if err := os.Remove(hog); err != nil {
				t.Fatal(err)
			}
		}
		if stalls > 5 {
			t.Fatal("stalled with room on the disk")
		}
	}
	if stalls == 0 {
		t.Fatal("the disk was never full")
	}
	l.Close()
	l = mustOpen(t, dir, nil)
	if got := numbers(t, l); len(got) != n {
		t.Fatalf("%d records, %d acknowledged", len(got), n)
	}
}

// Others filling the disk do not stop the journal: it has reserved space, which no reader sees.
func TestReserve(t *testing.T) {
	conform.Rule(t, "9-one-tree disk", "the journal goes on writing on a disk that is full")
	dir := mount(t, "size=12m")
	l := mustOpen(t, dir, nil)
	mustAppend(t, l, entry(0))
	hog, err := os.Create(filepath.Join(dir, "hog"))
	if err != nil {
		t.Fatal(err)
	}
	defer hog.Close()
	for {
		if _, err := hog.Write(make([]byte, 4<<10)); errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	n := 1
	for ; n < 2000; n++ {
		if _, _, err := l.Append(entry(n)); err != nil {
			t.Fatalf("record %d on a full disk: %v", n, err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, FileName))
	if err != nil || info.Size() != l.head.end {
		t.Errorf("the file has %v, the records %d bytes", info, l.head.end)
	}
	l.Close()
	if rep, err := Verify(dir, Options{}); err != nil || rep.Records != int64(n) || rep.PartialBytes != 0 {
		t.Error(rep, err)
	}
	l = mustOpen(t, dir, nil)
	if got := numbers(t, l); len(got) != n {
		t.Errorf("%d records, %d acknowledged", len(got), n)
	}
}

// A disk that becomes read-only stalls too.
func TestRealReadOnlyDisk(t *testing.T) {
	dir := mount(t, "size=128k")
	l := mustOpen(t, dir, nil)
	mustAppend(t, l, entry(1))
	l.Close()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=128k"); err != nil {
		t.Skip("kernel: mounting is not permitted")
	}
	if _, _, err := Open(dir, Options{}); !errors.Is(err, ErrStalled) || !errors.Is(err, syscall.EROFS) {
		t.Fatal(err)
	}
	if rep, err := Verify(dir, Options{}); err != nil || rep.Records != 1 {
		t.Fatal(rep, err)
	}
}
