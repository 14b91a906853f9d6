package main

import (
	"crypto/md5" // dpkg finds damaged files by it
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sluice/deploy"
)

// installed says where the files of an archive are installed.
var installed = []struct {
	from, to string
	mode     fs.FileMode
}{
	{"sluice", "usr/bin/sluice", 0o755},
	{"completions/sluice.bash", "usr/share/bash-completion/completions/sluice", 0o644},
	{"completions/sluice.zsh", "usr/share/zsh/vendor-completions/_sluice", 0o644},
	{"completions/sluice.fish", "usr/share/fish/vendor_completions.d/sluice.fish", 0o644},
	{"README.md", "usr/share/doc/sluice/README.md", 0o644},
	{"CHANGELOG.md", "usr/share/doc/sluice/CHANGELOG.md", 0o644},
	{"LICENSE", "usr/share/doc/sluice/copyright", 0o644},
}

// debian makes the Debian package of an archive's folder. Its folders DEBIAN and etc are dpkg's:
// what describes the package, and settings that an upgrade keeps.
func (r *release) debian(tree, arch string) error {
	unit, err := deploy.SystemUnit(deploy.Values{Program: "/usr/bin/sluice", EnvFile: deploy.SystemEnv, Package: true})
	if err != nil {
		return err
	}
	root, version := tree+".deb", debianVersion(r.version, r.at)
	put := func(name string, data []byte, mode fs.FileMode) {
		path := filepath.Join(root, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, mode), os.Chmod(path, mode))
	}
	for _, f := range installed {
		data, rerr := os.ReadFile(filepath.Join(tree, f.from))
		err = errors.Join(err, rerr)
		put(f.to, data, f.mode)
	}
	put("usr/lib/systemd/system/sluice.service", []byte(unit), 0o644)
	err = errors.Join(err, squeeze(filepath.Join(tree, "man"), filepath.Join(root, "usr/share/man/man1")))
	sums, size, werr := measured(root)
	err = errors.Join(err, werr)
	put("DEBIAN/md5sums", sums, 0o644)
	env := deploy.EnvFile("", map[string]string{"PATH": deploy.SystemPath, "SHELL": "/bin/sh"})
	put(strings.TrimPrefix(deploy.SystemEnv, "/"), []byte(env), 0o600)
	put("DEBIAN/conffiles", []byte(deploy.SystemEnv+"\n"), 0o644)
	for name, mode := range map[string]fs.FileMode{"control": 0o644, "postinst": 0o755, "prerm": 0o755, "postrm": 0o755} {
		data, rerr := os.ReadFile(filepath.Join("deploy/debian", name))
		err = errors.Join(err, rerr)
		put("DEBIAN/"+name, []byte(strings.NewReplacer("@ARCH@", arch, "@VERSION@", version, "@SIZE@",
			strconv.FormatInt(size, 10)).Replace(string(data))), mode)
	}
	if err == nil {
		err = filepath.Walk(root, func(path string, _ os.FileInfo, err error) error {
			return errors.Join(err, os.Chtimes(path, r.at, r.at))
		})
	}
	if err != nil {
		return fmt.Errorf("the Debian package: %w", err)
	}
	_, err = run(append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.at.Unix(), 10)), "dpkg-deb",
		"--root-owner-group", "-Zgzip", "--build", root, filepath.Join(r.out, fmt.Sprintf("sluice_%s_%s.deb", version, arch)))
	return err
}

// measured returns the checksums of a folder's files for dpkg, and their size in KiB.
func measured(root string) (sums []byte, size int64, err error) {
	err = walk(root, "", func(name string, _ fs.FileMode, data []byte) error {
		sums = fmt.Appendf(sums, "%x  %s\n", md5.Sum(data), strings.TrimPrefix(name, "/"))
		size += (int64(len(data)) + 1023) / 1024
		return nil
	})
	return sums, size, err
}

// debianVersion is a version that dpkg takes: it begins with a digit, and one without a tag is older than any with one.
func debianVersion(v string, at time.Time) string {
	v = regexp.MustCompile(`[^A-Za-z0-9.+~]`).ReplaceAllString(v, "+")
	if tag := strings.TrimPrefix(v, "v"); regexp.MustCompile(`^[0-9]+\.[0-9]`).MatchString(tag) {
		return tag
	}
	return "0~" + at.Format("20060102") + "." + v
}
