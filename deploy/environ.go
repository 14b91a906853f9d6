package deploy

import (
	"path/filepath"
	"strings"

	"sluice/internal/fault"
	"sluice/internal/text"
)

// SystemVars is the environment of the machine's service.
func SystemVars() map[string]string { return map[string]string{"PATH": SystemPath, "SHELL": "/bin/sh"} }

// Vars is what a user's service gets of an environment: what agents go by, and the variables that
// more names, where NAME* stands for all that begin so. No secret is among them that was not named.
func Vars(environ, more []string) map[string]string {
	wanted := append([]string{"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
		"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME",
		"XDG_CACHE_HOME", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}, more...)
	out := map[string]string{}
	path := ""
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if name == "PATH" {
			path = value
		}
		for _, w := range wanted {
			head, all := strings.CutSuffix(w, "*")
			if name == w && value != "" || all && strings.HasPrefix(name, head) {
				out[name] = value
			}
		}
	}
	var dirs []string
	for _, dir := range filepath.SplitList(path) {
		if filepath.IsAbs(dir) { // another would mean something else in each folder
			dirs = append(dirs, dir)
		}
	}
	out["PATH"] = strings.Join(dirs, string(filepath.ListSeparator))
	return out
}

// WithNamed adds to an environment the variables that were named; getenv has their values.
func WithNamed(env map[string]string, getenv func(string) string, names []string) (map[string]string, error) {
	for _, name := range names {
		v := getenv(name)
		if v == "" {
			return nil, fault.Misused("set it, or omit --env "+text.Line(name), "%s is not set here", text.Line(name))
		}
		env[name] = v
	}
	return env, nil
}
