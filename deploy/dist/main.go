// Command dist makes what is released: an archive for each system and a Debian package for each
// Linux, with man pages and completions in them, and their checksums. The same commit gives the
// same bytes: times are SOURCE_DATE_EPOCH's, else the commit's.
//
//	go run ./deploy/dist -out dist -version v1.2.3
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	r := release{}
	flag.StringVar(&r.out, "out", "dist", "the folder to make them in; it is emptied")
	flag.StringVar(&r.version, "version", "devel", "what the binaries call themselves")
	only := flag.String("only", "", "one system alone: linux/amd64")
	flag.Parse()
	syscall.Umask(0o022) // the package has the modes of its folders
	if err := r.make(*only); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// release is what is made.
type release struct {
	out, version string
	at           time.Time
	work         string // for what goes into archives
}

func (r *release) make(only string) (err error) {
	if r.at, err = sourceDate(); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "sluice-dist-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755), r.texts()); err != nil {
		return err
	}
	for _, target := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"} {
		if only != "" && only != target {
			continue
		}
		goos, arch, _ := strings.Cut(target, "/")
		if err := r.system(goos, arch); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
	}
	return r.checksums()
}

// sourceDate is the time that all files get.
func sourceDate() (time.Time, error) {
	word := os.Getenv("SOURCE_DATE_EPOCH")
	if word == "" {
		out, err := exec.Command("git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("the commit's time: %w: set SOURCE_DATE_EPOCH", err)
		}
		word = strings.TrimSpace(string(out))
	}
	sec, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: want seconds", word)
	}
	return time.Unix(sec, 0).UTC(), nil
}

// texts makes what all systems share: man pages, completions, README, CHANGELOG and LICENSE.
func (r *release) texts() error {
	self := filepath.Join(r.work, "self")
	if err := r.build(self, "", ""); err != nil {
		return err
	}
	for _, dir := range []string{"man", "completions"} {
		if err := os.MkdirAll(filepath.Join(r.work, "texts", dir), 0o755); err != nil {
			return err
		}
	}
	env := append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.at.Unix(), 10))
	if _, err := run(env, self, "man", filepath.Join(r.work, "texts", "man")); err != nil {
		return err
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		out, err := run(env, self, "completion", shell)
		if err == nil {
			err = os.WriteFile(filepath.Join(r.work, "texts", "completions", "sluice."+shell), out, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return copyFiles(filepath.Join(r.work, "texts"), "README.md", "CHANGELOG.md", "LICENSE")
}

// build builds the binary; "" = for this machine.
func (r *release) build(to, goos, arch string) error {
	env := append(os.Environ(), "CGO_ENABLED=0")
	if goos != "" {
		env = append(env, "GOOS="+goos, "GOARCH="+arch)
	}
	_, err := run(env, "go", "build", "-trimpath", "-ldflags", "-s -w -buildid= -X main.version="+r.version, "-o", to,
		"sluice/cmd/sluice")
	return err
}

// system makes what is released for one system.
func (r *release) system(goos, arch string) error {
	name := fmt.Sprintf("sluice_%s_%s_%s", r.version, goos, arch)
	tree := filepath.Join(r.work, name)
	if err := os.CopyFS(tree, os.DirFS(filepath.Join(r.work, "texts"))); err != nil {
		return err
	}
	var err error
	if goos == runtime.GOOS && arch == runtime.GOARCH {
		err = os.Link(filepath.Join(r.work, "self"), filepath.Join(tree, "sluice"))
	} else {
		err = r.build(filepath.Join(tree, "sluice"), goos, arch)
	}
	if err != nil {
		return err
	}
	if err := pack(filepath.Join(r.out, name+".tar.gz"), tree, name, r.at); err != nil {
		return err
	}
	if goos != "linux" {
		return nil
	}
	return r.debian(tree, arch)
}

// checksums writes SHA256SUMS, for sha256sum -c.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums []string
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		sums = append(sums, fmt.Sprintf("%x  %s\n", sha256.Sum256(data), e.Name()))
	}
	slices.Sort(sums)
	fmt.Print(strings.Join(sums, ""))
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(strings.Join(sums, "")), 0o644)
}

func copyFiles(to string, names ...string) error {
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run runs a program and returns its output.
func run(env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = env
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s%s", filepath.Base(name), strings.Join(args, " "), err, complaints.String(), out)
	}
	return out, nil
}
