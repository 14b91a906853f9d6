package program

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Native gives the program that a file of a format starts: from npm, codex comes as a launcher that has the real program
// work in a process beside its own, and so does claude where npm ran no scripts. To kill such a launcher leaves the program
// at work. file is absolute; it is given back where it is the program itself, or where no other is found.
func Native(format, file string) string {
	real, err := filepath.EvalSymlinks(file)
	if err != nil || !Known(format) || binary(real) {
		return file
	}
	name := map[string]string{Claude: "@anthropic-ai/claude-code", Codex: "@openai/codex"}[format]
	parts := strings.Split(filepath.ToSlash(real), "/"+name+"/")
	if len(parts) < 2 {
		return file // a script of somebody's own
	}
	root := filepath.FromSlash(strings.Join(parts[:len(parts)-1], "/"+name+"/") + "/" + name)
	for _, pkg := range []string{filepath.Join(root, "node_modules", name), root, realRoot(root)} {
		for _, at := range nativeAt(format, pkg) {
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

// nativeAt are the places where the package pkg, or the one for this machine beside it, has the program.
func nativeAt(format, pkg string) []string {
	machine := runtime.GOOS + "-" + map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	if format == Claude {
		return []string{filepath.Join(pkg+"-"+machine, "claude"), filepath.Join(pkg+"-"+machine+"-musl", "claude")}
	}
	triple := map[string]string{
		"linux-x64": "x86_64-unknown-linux-musl", "linux-arm64": "aarch64-unknown-linux-musl",
		"darwin-x64": "x86_64-apple-darwin", "darwin-arm64": "aarch64-apple-darwin",
	}[machine]
	var out []string
	for _, base := range []string{pkg + "-" + machine, pkg} {
		out = append(out, filepath.Join(base, "vendor", triple, "bin", "codex"), filepath.Join(base, "vendor", triple, "codex", "codex"))
	}
	return out
}

// binary says that a file is a program of the machine's own, by its first bytes.
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
