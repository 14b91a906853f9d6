package git

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// Setting is one line of git's settings.
type Setting struct {
	Key   string // section and name in lower case
	Value string
	File  string // its source, absolute; only of Settings
}

// Settings lists git's settings of the system, the person and the repo in the checkout at top, with
// includes. It starts nothing. Settings that later ones replace are listed too.
func (r *place) Settings(ctx context.Context, top string) ([]Setting, error) {
	gitDir, top, err := r.gitDirOf(top)
	if err != nil {
		return nil, fmt.Errorf("git's settings: %w", err)
	}
	out, err := r.inRepo(ctx, gitDir, top, call{args: []string{"config", "--includes", "--null", "--show-origin",
		"--list"}, env: remoteEnv(), userConfig: true, dir: top, limit: maxConfigList})
	if err != nil {
		return nil, fmt.Errorf("git's settings: %w", err)
	}
	var all []Setting
	for fields := names(out); len(fields) > 1; fields = fields[2:] {
		file, ok := strings.CutPrefix(fields[0], "file:")
		if !ok {
			continue // from our own command line
		}
		if !filepath.IsAbs(file) {
			file = filepath.Join(top, file)
		}
		s := settingIn(fields[1])
		s.File = file
		all = append(all, s)
	}
	return all, nil
}

// settingIn reads an entry of `git config --null`: a key without a value is true.
func settingIn(entry string) Setting {
	key, value, has := strings.Cut(entry, "\n")
	if !has {
		value = "true"
	}
	return Setting{Key: key, Value: value}
}

// PersonalSetting returns one of git's settings of the person or the system, or "". Those of a repo do
// not count: an agent may have written them.
func PersonalSetting(ctx context.Context, key string) (string, error) {
	t, err := findTool()
	if err != nil {
		return "", err
	}
	out, err := t.run(ctx, call{args: []string{"config", "--includes", "--null", "--get", key}, env: remoteEnv(),
		userConfig: true, codes: []int{1}})
	if err != nil {
		return "", fmt.Errorf("your git setting %s: %w", key, err)
	}
	return strings.TrimSuffix(string(out), "\x00"), nil
}
