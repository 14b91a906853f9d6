//go:build linux || darwin

package program

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestNative: behind an npm launcher the real program is found; a program, or an unknown launcher,
// is returned itself.
func TestNative(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put := func(rel, text string) string {
		file := filepath.Join(dir, rel)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return file
	}
	link := func(rel, to string) string {
		file := filepath.Join(dir, rel)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, file); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const elf, script = "\x7fELF program", "#!/usr/bin/env node\n"
	machine := runtime.GOOS + "-" + map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	nativeAt := func(format, pkg string) []string { return profileOf(format).native(pkg, machine) }
	codexAt := nativeAt(Codex, "lib/node_modules/@openai/codex")[0]
	claudeAt := nativeAt(Claude, "lib/node_modules/@anthropic-ai/claude-code")[0]
	put("lib/node_modules/@openai/codex/bin/codex.js", script)
	put("lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe", script)
	codex := link("bin/codex", "../lib/node_modules/@openai/codex/bin/codex.js")
	claude := link("bin/claude", "../lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe")
	own := put("own/codex", "#!/bin/sh\nexec codex \"$@\"\n")
	for _, file := range []string{codex, claude, own} {
		if got := Native(Codex, file); got != file {
			t.Errorf("nothing is installed for this machine, and %s is %s", file, got)
		}
	}
	put(codexAt, elf)
	put(claudeAt, elf)
	nested := put("other/node_modules/@openai/codex/bin/codex.js", script)
	inside := put(nativeAt(Codex, "other/node_modules/@openai/codex/node_modules/@openai/codex")[0], elf)
	real := put("bin/real", elf)
	for _, c := range []struct{ format, file, want string }{
		{Codex, codex, filepath.Join(dir, codexAt)},
		{Claude, claude, filepath.Join(dir, claudeAt)},
		{Codex, nested, inside},
		{Codex, real, real},
		{Codex, own, own},
		{Claude, codex, codex},
		{"text", codex, codex},
		{Codex, filepath.Join(dir, "none"), filepath.Join(dir, "none")},
	} {
		if got := Native(c.format, c.file); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.format, c.file, got, c.want)
		}
	}
	put("lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe", elf) // as npm's scripts leave it
	if got := Native(Claude, claude); got != claude {
		t.Errorf("%s: %s", claude, got)
	}
}
