package program

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Native returns the program that a file of a format starts: from npm some come as a launcher that has the real program work
// in a process beside its own. To kill such a launcher leaves the program at work. file is absolute; it is given back where it is the program itself, or where no other is found.
func Native(format, file string) string {
	real, err := filepath.EvalSymlinks(file)
	p := profileOf(format)
	if err != nil || p.native == nil || binary(real) {
		return file
	}
	name := p.npm
	parts := strings.Split(filepath.ToSlash(real), "/"+name+"/")
	if len(parts) < 2 {
		return file // a script of somebody's own
	}
	machine := runtime.GOOS + "-" + map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	root := filepath.FromSlash(strings.Join(parts[:len(parts)-1], "/"+name+"/") + "/" + name)
	for _, pkg := range []string{filepath.Join(root, "node_modules", name), root, realRoot(root)} {
		for _, at := range p.native(pkg, machine) {
			if binary(at) {
				return at
			}
		}
	}
	return file
}

// realRoot is a package's folder where it is no link: pnpm lays what it needs beside that.
func realRoot(root string) string {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		return real
	}
	return root
}

// binary reports whether a file is a program of the machine's own, by its first bytes.
func binary(file string) bool {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return false // nothing else is opened: a pipe would be waited for
	}
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err != nil {
		return false
	}
	for _, magic := range []string{"\x7fELF", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe"} {
		if bytes.Equal(head, []byte(magic)) {
			return true
		}
	}
	return false
}
