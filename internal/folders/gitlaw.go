package folders

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/gates"
	"sluice/internal/git"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/shells"
	"sluice/internal/tree"
)

// settingFile is a git setting that names a file or folder, by its key without the quoted part.
type settingFile struct {
	key    string
	folder bool
}

func settingFiles() []settingFile {
	return []settingFile{{"include.path", false}, {"includeif.path", false}, {"core.hookspath", true},
		{"core.attributesfile", false},
		{"core.excludesfile", false}, {"commit.template", false}, {"init.templatedir", true}, {"mailmap.file", false},
		{"blame.ignorerevsfile", false}, {"gpg.ssh.allowedsignersfile", false}, {"gpg.ssh.revocationfile", false}}
}

// settingPrograms returns the last parts of git settings that name a program.
func settingPrograms() []string {
	return []string{"clean", "smudge", "process", "command", "textconv", "external", "driver", "cmd", "path",
		"program", "helper", "editor",
		"pager", "fsmonitor", "sshcommand", "askpass", "gitproxy", "difffilter", "defaultkeycommand", "packobjectshook",
		"receivepack",
		"uploadpack", "alternaterefscommand"}
}

// gitFiles returns the files which the person's git settings named or started when the run first
// used the folder: absolute, or from the top. Only those in the checkout matter.
func (x *ground) gitFiles(ctx context.Context, j job.Job, b tree.Begin) ([]string, error) {
	record := x.recordFile(j, settingsRecord, b.Top)
	var files []string
	if err := layout.Load(record, &files); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return files, err
	}
	all, err := x.opt.Git.Settings(ctx, b.Top)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		files = append(files, namedBy(s, b.Top)...)
	}
	bases := gates.Bases{Root: x.Root, Top: b.Top, Dir: b.Dir}
	files = slices.DeleteFunc(files, func(f string) bool { return len(bases.Places(f)) == 0 })
	slices.Sort(files)
	files = slices.Compact(files)
	return files, keepFirst(record, files)
}

func namedBy(s git.Setting, top string) (out []string) {
	section, name := s.Key[:strings.IndexByte(s.Key+".", '.')], s.Key[strings.LastIndexByte(s.Key, '.')+1:]
	for _, f := range settingFiles() {
		if f.key != s.Key && f.key != section+"."+name {
			continue
		}
		at := s.Value
		if rest, ok := strings.CutPrefix(at, "~/"); ok {
			at = filepath.Join(os.Getenv("HOME"), rest)
		}
		if base := top; !filepath.IsAbs(at) && at != "" {
			if name == "path" { // an include is relative to its own file
				base = filepath.Dir(s.File)
			}
			at = filepath.Join(base, at)
		}
		if at == "" {
			return nil
		}
		out = []string{at}
		if real, err := filepath.EvalSymlinks(at); err == nil && real != at {
			out = append(out, real)
		}
		if f.folder {
			for _, dir := range slices.Clone(out) {
				out = append(out, dir+"/**")
			}
		}
		return out
	}
	if section == "alias" || section == "pager" || section == "submodule" && name == "update" ||
		section != "submodule" && slices.Contains(settingPrograms(), name) {
		command := strings.TrimPrefix(s.Value, "!")
		if section == "alias" && command == s.Value {
			return nil // a git command
		}
		return shells.Starts([]string{"sh", "-c", command}, nil).Files
	}
	return nil
}

func keepFirst(file string, v any) error {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return layout.Save(file, v)
}
