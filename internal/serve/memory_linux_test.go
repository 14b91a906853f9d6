package serve

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestProgramIsUnmapped: pages of the program's file do not stay in this process, and what runs finds them again.
func TestProgramIsUnmapped(t *testing.T) {
	text := func() (kib int) {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(status)) {
			if v, ok := strings.CutPrefix(line, "RssFile:"); ok {
				kib, err = strconv.Atoi(strings.Fields(v)[0])
			}
		}
		if err != nil || kib == 0 {
			t.Fatalf("RssFile: %v", err)
		}
		return kib
	}
	before := text()
	unmapProgram()
	if after := text(); after > before/2 {
		t.Errorf("%d KiB of files are mapped, and %d before", after, before)
	}
}

// TestChangedPagesStay: what differs from the program's file is left alone, such as the tables of a program that was
// built with -buildmode=pie, which the loader relocates and then makes read-only.
func TestChangedPagesStay(t *testing.T) {
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	page, err := syscall.Mmap(int(file.Fd()), 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(page)
	page[0] = 'x' // not as in an ELF file
	if err := syscall.Mprotect(page, syscall.PROT_READ); err != nil {
		t.Fatal(err)
	}
	unmapProgram()
	if page[0] != 'x' {
		t.Error("the page is the file's again")
	}
}
