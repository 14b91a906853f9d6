package program

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Native returns the program that a file of a format starts. Some npm packages install a launcher
// that runs the real program in a second process, which would survive if only the launcher were
// killed. file is absolute; it is returned itself if it is the program or no other is found.
func Native(format, file string) string {
	real, err := filepath.EvalSymlinks(file)
	p := profileOf(format)
	if err != nil || p.native == nil || binary(real) {
		return file
	}
	above := strings.LastIndex(real, "/"+p.npm+"/")
	if above < 0 {
		return file // somebody's own script
	}
	machine := runtime.GOOS + "-" + map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	root := real[:above] + "/" + p.npm
	for _, pkg := range []string{filepath.Join(root, "node_modules", p.npm), root, realRoot(root)} {
		for _, at := range p.native(pkg, machine) {
			if binary(at) {
				return at
			}
		}
	}
	return file
}

// realRoot returns a package's folder without links: pnpm puts dependencies beside that.
func realRoot(root string) string {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		return real
	}
	return root
}

// binary reports whether a file is a native program, by its first bytes.
func binary(file string) bool {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return false // opening a pipe, for example, would block
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
	return slices.Contains([]string{"\x7fELF", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe"}, string(head))
}
