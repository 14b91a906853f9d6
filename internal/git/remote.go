package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"sluice/internal/fault"
)

// ErrURL is returned for an address that we refuse to contact.
var ErrURL = errors.New("not an address to ask")

// maxURLBytes limits an address.
const maxURLBytes = 4 << 10

// remoteEnv returns the environment variables for a network call: the user's keys, helpers and
// proxies.
func remoteEnv() []string {
	var env []string
	for _, name := range []string{
		"HOME", "USER", "LOGNAME", "PATH", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
		"SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
		"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
	} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// RemoteURL returns a remote's address from the repo's own configuration, or "". An agent may have
// written it: record it when a person looks, and use the recorded one.
func (r *place) RemoteURL(ctx context.Context, name string) (string, error) {
	if name == "" || strings.ContainsFunc(name, func(c rune) bool { return unicode.IsControl(c) }) {
		return "", fmt.Errorf("%.80q is not a valid name for a remote", name)
	}
	all, err := r.settings(ctx, filepath.Join(r.common, "config"))
	if err != nil {
		return "", fmt.Errorf("read the address of %s: %w", name, err)
	}
	address := ""
	for _, s := range all {
		if s.Key == "remote."+name+".url" {
			address = s.Value
		}
	}
	return address, nil
}

// LsRemotePulls asks the forge at address for the heads of its pull and merge requests: object name
// by ref (refs/pull/N/head, refs/merge-requests/N/head). It accepts https, ssh (also
// user@host:path), file and an absolute path. It runs in the root folder, outside the repo, whose
// configuration could name the ssh command. It reads the user's own configuration for credentials
// and never prompts: a password that no helper has is an error.
func (r *Repo) LsRemotePulls(ctx context.Context, address string) (map[string]string, error) {
	refs, err := lsRemote(ctx, r, address, isPull, "refs/pull/*/head", "refs/merge-requests/*/head")
	if err != nil {
		return nil, fmt.Errorf("pull requests of %s: %w", ShownURL(address), err)
	}
	return refs, nil
}

// LsRemoteBranches asks for the branches at address, as LsRemotePulls does: object name by branch.
func LsRemoteBranches(ctx context.Context, r *Repo, address string) (map[string]string, error) {
	refs, err := lsRemote(ctx, r, address, func(ref string) bool { return strings.HasPrefix(ref, BranchRefs) },
		BranchRefs+"*")
	if err != nil {
		return nil, fmt.Errorf("branches of %s: %w", ShownURL(address), err)
	}
	out := make(map[string]string, len(refs))
	for ref, sha := range refs {
		out[ShortBranch(ref)] = sha
	}
	return out, nil
}

// lsRemote lists the refs at address that match and that want accepts: a remote may send refs that
// were not requested.
func lsRemote(ctx context.Context, r *Repo, address string, want func(string) bool,
	patterns ...string) (map[string]string, error) {
	protocol, err := checkURL(address)
	if err != nil {
		return nil, err
	}
	if err := r.keepShadow(ctx); err != nil {
		return nil, err
	}
	env := append([]string{
		"GIT_DIR=" + r.shadowDir(), "GIT_ALLOW_PROTOCOL=" + protocol,
	}, remoteEnv()...)
	c := call{
		args: append([]string{"ls-remote", "--quiet", "--refs", "--", address}, patterns...),
		env:  env, limit: listOutput, timeout: remoteTime, userConfig: true,
	}
	out, err := r.run(ctx, c)
	if err != nil {
		return nil, err
	}
	refs := parseRefs(out, "\t")
	maps.DeleteFunc(refs, func(name, _ string) bool { return !want(name) })
	return refs, nil
}

// RemoteHead returns the commit of a branch at an address, "" if it is not there. It asks as
// LsRemotePulls does.
func RemoteHead(ctx context.Context, r *Repo, address, branch string) (string, error) {
	ref := BranchRefs + branch
	if err := checkRef(ref); err != nil {
		return "", err
	}
	refs, err := lsRemote(ctx, r, address, func(name string) bool { return name == ref }, ref)
	if err != nil {
		return "", fmt.Errorf("branch %s of %s: %w", branch, ShownURL(address), err)
	}
	return refs[ref], nil
}

// isPull reports whether a ref is the head of a pull request.
func isPull(ref string) bool {
	rest, ok := strings.CutPrefix(ref, "refs/pull/")
	if !ok {
		rest, ok = strings.CutPrefix(ref, "refs/merge-requests/")
	}
	number, tail, _ := strings.Cut(rest, "/")
	return ok && number != "" && tail == "head"
}

// checkURL accepts addresses whose protocol runs no program of the address's choice, and returns
// the protocol.
func checkURL(address string) (protocol string, err error) {
	bad := func(why string) (string, error) {
		return "", fault.New("use https, ssh, file or an absolute path", "%w: %s: %s", ErrURL, ShownURL(address), why)
	}
	switch {
	case address == "" || len(address) > maxURLBytes:
		return bad("empty or too long")
	case strings.ContainsFunc(address, func(c rune) bool { return unicode.IsControl(c) || c == ' ' }):
		return bad("it has spaces or control characters")
	case strings.HasPrefix(address, "-"):
		return bad("it begins like an option")
	case filepath.IsAbs(address):
		return "file", nil
	}
	if scheme, _, ok := strings.Cut(address, "://"); ok {
		u, err := url.Parse(address)
		if err != nil {
			return bad("it cannot be read")
		}
		if strings.HasPrefix(u.Hostname(), "-") || strings.HasPrefix(u.User.Username(), "-") {
			return bad("its host begins like an option")
		}
		switch scheme {
		case "https", "ssh", "file":
			return scheme, nil
		}
		return bad("its protocol is not supported")
	}
	host, path, ok := strings.Cut(address, ":")
	switch {
	case !ok || host == "" || path == "" || strings.Contains(host, "/"):
		return bad("it is not an address")
	case strings.HasPrefix(path, ":"):
		return bad("it names a program")
	case strings.HasPrefix(host[strings.LastIndexByte(host, '@')+1:], "-"):
		return bad("its host begins like an option")
	}
	return "ssh", nil
}

// ShownURL returns an address for people, without its password.
func ShownURL(address string) string {
	if u, err := url.Parse(address); err == nil && u.User != nil {
		return strings.ReplaceAll(u.Redacted(), "%2A", "*")
	}
	if len(address) > 200 {
		address = address[:200]
	}
	return fmt.Sprintf("%q", address)
}
