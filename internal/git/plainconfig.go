package git

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/atomicfile"
)

// maxConfigList limits the size of a repo's settings.
const maxConfigList = 4 << 20

// plainKeys returns the settings copied from the repo into git folders that we make. None names a
// program, a file or another host's secret. A * stands for a name of the repo's.
func plainKeys() []string {
	return []string{
		"core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode", "core.autocrlf", "core.eol",
		"core.safecrlf",
		"core.bigfilethreshold", "core.sparsecheckout", "core.sparsecheckoutcone", "core.quotepath", "core.abbrev",
		"core.commentchar",
		"core.whitespace", "core.longpaths", "core.protecthfs", "core.protectntfs",
		"extensions.objectformat", "extensions.partialclone",
		"user.name", "user.email", "author.name", "author.email", "committer.name", "committer.email",
		"remote.*.url", "remote.*.pushurl", "remote.*.fetch", "remote.*.push", "remote.*.promisor",
		"remote.*.partialclonefilter",
		"remote.*.tagopt", "remote.*.prune", "remote.pushdefault",
		"branch.*.remote", "branch.*.pushremote", "branch.*.merge", "branch.*.rebase", "branch.*.description",
		"branch.autosetuprebase",
		"push.default", "push.autosetupremote", "push.followtags", "pull.rebase", "pull.ff", "merge.ff",
		"merge.conflictstyle",
		"rebase.autosquash", "rebase.autostash", "rebase.updaterefs", "diff.algorithm", "diff.renames", "init.defaultbranch",
		"commit.cleanup", "index.sparse", "index.version", "submodule.*.url", "submodule.*.active", "submodule.active",
	}
}

// configKept caches the settings of a file in one state.
type configKept struct {
	of  atomicfile.Stat
	all []Setting
}

// PlainConfig returns a configuration for our git folder: the plain settings of the repo and of its
// checkout at top. It has no includes, hooks, filters, drivers or helpers; URLs have no passwords.
func (r *place) PlainConfig(ctx context.Context, top string) ([]byte, error) {
	gitDir, _, err := r.gitDirOf(top)
	if err != nil {
		return nil, err
	}
	all, err := r.settings(ctx, filepath.Join(r.common, "config"))
	if err != nil {
		return nil, fmt.Errorf("settings of the repo: %w", err)
	}
	if slices.ContainsFunc(all,
		func(s Setting) bool { return s.Key == "extensions.worktreeconfig" && s.Value != "false" }) {
		own, err := r.settings(ctx, filepath.Join(gitDir, "config.worktree"))
		if err != nil {
			return nil, fmt.Errorf("settings of the worktree: %w", err)
		}
		all = slices.Concat(all, own)
	}
	return plainConfig(all), nil
}

// settings lists one file's settings, without includes; none if there is no file.
func (r *place) settings(ctx context.Context, file string) ([]Setting, error) {
	now, err := atomicfile.Lstat(filepath.Dir(file), filepath.Base(file))
	if err != nil {
		return nil, ignoreGone(err)
	}
	if kept, ok := r.configs.Get(file); ok && now.Mode.IsRegular() && kept.of.Untouched(now) {
		return kept.all, nil
	}
	out, err := r.run(ctx, call{args: []string{"config", "--file", file, "--no-includes", "--null", "--list"},
		limit: maxConfigList})
	if err != nil {
		return nil, err
	}
	var all []Setting
	for _, line := range names(out) {
		all = append(all, settingIn(line))
	}
	r.configs.Put(file, configKept{now, all})
	return all, nil
}

// plainConfig writes the settings that may be copied, and ours.
func plainConfig(all []Setting) []byte {
	kept := slices.DeleteFunc(slices.Clone(all), func(s Setting) bool { return !isPlain(s) })
	version := 0
	if slices.ContainsFunc(kept, func(s Setting) bool { return strings.HasPrefix(s.Key, "extensions.") }) {
		version = 1
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "[core]\n\trepositoryformatversion = %d\n\tbare = false\n\tlogallrefupdates = true\n[gc]\n\tauto = "+
		"0\n[maintenance]\n\tauto = false\n", version)
	for _, s := range kept {
		first, last := strings.IndexByte(s.Key, '.'), strings.LastIndexByte(s.Key, '.')
		section := s.Key[:first]
		if first != last {
			section += " " + inConfig(s.Key[first+1:last])
		}
		value := s.Value
		if strings.HasSuffix(s.Key, "url") {
			value = withoutPassword(value)
		}
		fmt.Fprintf(&b, "[%s]\n\t%s = %s\n", section, s.Key[last+1:], inConfig(value))
	}
	return b.Bytes()
}

// inConfig quotes a value or a name for git.
func inConfig(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// isPlain reports whether a setting is one of plainKeys and its value starts nothing.
func isPlain(s Setting) bool {
	name := s.Key
	first, last := strings.IndexByte(name, '.'), strings.LastIndexByte(name, '.')
	if first < 0 {
		return false
	}
	if first != last {
		if strings.ContainsAny(name, "\n\x00") {
			return false
		}
		name = name[:first] + ".*" + name[last:]
	}
	if !slices.Contains(plainKeys(), name) {
		return false
	}
	helper := strings.Contains(s.Value, "::") && !strings.Contains(s.Value, "://") // ext::COMMAND
	return !strings.HasSuffix(name, "url") || !helper && !strings.HasPrefix(s.Value, "-")
}

// withoutPassword removes credentials from a URL; a user name stays, as ssh needs it.
func withoutPassword(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.User == nil {
		return s
	}
	if u.User = url.User(u.User.Username()); u.Scheme == "http" || u.Scheme == "https" {
		u.User = nil // the name may be a token
	}
	return u.String()
}
