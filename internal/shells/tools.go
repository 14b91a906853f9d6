package shells

import (
	"slices"
	"strings"
)

// tool is a well-known program that goes by a file of the repo, and which.
type tool struct {
	names []string
	files []string // in the folder that it runs in
	file  []string // options before another such file
	dir   []string // options before another folder
	run   []string // subcommands behind which a command follows; "" = at once
	paths []string // subcommands behind which a file or folder is run
}

// tools are those that criteria and gates name often. What their files start in turn is not looked for.
func tools() []tool {
	npm := []string{"package.json", ".npmrc"}
	return []tool{
		{names: []string{"make", "gmake", "bmake"}, files: []string{"Makefile", "makefile", "GNUmakefile"},
			file: []string{"-f", "--file", "--makefile"}, dir: []string{"-C", "--directory"}},
		{names: []string{"just"}, files: []string{"justfile", "Justfile", ".justfile"},
			file: []string{"-f", "--justfile"}, dir: []string{"-d", "--working-directory"}},
		{names: []string{"task", "go-task"},
			files: []string{"Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml", "Taskfile.dist.yml",
				"Taskfile.dist.yaml"}, file: []string{"-t", "--taskfile"}, dir: []string{"-d", "--dir"}},
		{names: []string{"npm"}, files: npm, dir: []string{"--prefix", "-C"}, run: []string{"exec", "x"}},
		{names: []string{"npx"}, files: npm, run: []string{""}},
		{names: []string{"pnpm", "pnpx"}, files: append(npm, ".pnpmfile.cjs", ".pnpmfile.mjs", "pnpm-workspace.yaml"),
			dir: []string{"--dir", "-C"}, run: []string{"exec", "dlx"}},
		{names: []string{"yarn"},
			files: append(npm, ".yarnrc", ".yarnrc.yml", ".yarn/releases/**", ".yarn/plugins/**", ".pnp.cjs", ".pnp.loader.mjs"),
			dir:   []string{"--cwd"}, run: []string{"exec"}},
		{names: []string{"bun", "bunx"}, files: append(npm, "bunfig.toml"), dir: []string{"--cwd"}, run: []string{"x"},
			paths: []string{"run", ""}},
		{names: []string{"deno"}, files: []string{"deno.json", "deno.jsonc", "package.json"},
			file: []string{"-c", "--config"}, paths: []string{"run"}},
		{names: []string{"go"}, dir: []string{"-C"}, paths: []string{"run"}},
		{names: []string{"cargo", "rustc"}, files: []string{"Cargo.toml", "build.rs", ".cargo/config.toml", ".cargo/config",
			"rust-toolchain.toml", "rust-toolchain", "clippy.toml", ".clippy.toml"},
			file: []string{"--manifest-path"}, dir: []string{"-C"}},
		{names: []string{"pytest", "py.test"}, file: []string{"-c"},
			files: []string{"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg",
				"conftest.py"}},
		{names: []string{"tox"}, files: []string{"tox.ini", "tox.toml", "pyproject.toml", "setup.cfg"},
			file: []string{"-c", "--conf"}},
		{names: []string{"nox"}, files: []string{"noxfile.py"}, file: []string{"-f", "--noxfile"}},
		{names: []string{"uv", "uvx"}, files: []string{"pyproject.toml", "uv.toml"},
			dir: []string{"--directory", "--project"}, run: []string{"run"}},
		{names: []string{"poetry", "pdm", "hatch", "rye"}, files: []string{"pyproject.toml"},
			dir: []string{"-C", "--directory"}, run: []string{"run"}},
		{names: []string{"pipenv"}, files: []string{"Pipfile"}, run: []string{"run"}},
		{names: []string{"pixi"}, files: []string{"pixi.toml", "pyproject.toml"}, file: []string{"--manifest-path"},
			run: []string{"run"}},
		{names: []string{"mise"}, files: []string{"mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml",
			"mise/config.toml", ".mise/config.toml", ".config/mise.toml", ".config/mise/config.toml", ".tool-versions"},
			dir: []string{"-C", "--cd"}},
		{names: []string{"gradle", "gradlew"}, dir: []string{"-p", "--project-dir"},
			files: []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts",
				"gradle.properties", "gradle/wrapper/gradle-wrapper.properties", "gradle/wrapper/gradle-wrapper.jar",
				"buildSrc/build.gradle", "buildSrc/build.gradle.kts", "buildSrc/src/**"}},
		{names: []string{"mvn", "mvnw"}, files: []string{"pom.xml", ".mvn/**"}, file: []string{"-f", "--file"}},
		{names: []string{"rake"}, files: []string{"Rakefile", "rakefile", "Rakefile.rb", "rakelib/**"},
			file: []string{"-f", "--rakefile"}},
		{names: []string{"bundle"}, files: []string{"Gemfile", ".bundle/config"}, run: []string{"exec"}},
		{names: []string{"rspec"}, files: []string{".rspec"}},
		{names: []string{"composer"}, files: []string{"composer.json"}, dir: []string{"-d", "--working-dir"}},
		{names: []string{"phpunit"}, files: []string{"phpunit.xml", "phpunit.xml.dist"},
			file: []string{"-c", "--configuration"}},
		{names: []string{"mix"}, files: []string{"mix.exs"}},
		{names: []string{"cmake", "ctest"}, files: []string{"CMakeLists.txt", "CMakePresets.json"}},
		{names: []string{"ninja"}, files: []string{"build.ninja"}, file: []string{"-f"}, dir: []string{"-C"}},
		{names: []string{"pre-commit"}, files: []string{".pre-commit-config.yaml"}, file: []string{"-c", "--config"}},
	}
}

// linters are the tools that judge sources and go by settings.
func linters() []tool {
	return []tool{
		{names: []string{"golangci-lint"}, files: named(".golangci", "yml", "yaml", "toml", "json"),
			file: []string{"-c", "--config"}},
		{names: []string{"ruff"}, files: []string{"ruff.toml", ".ruff.toml", "pyproject.toml"}, file: []string{"--config"}},
		{names: []string{"mypy", "dmypy"}, files: []string{"mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg"},
			file: []string{"--config-file"}},
		{names: []string{"pyright", "basedpyright"}, files: []string{"pyrightconfig.json", "pyproject.toml"},
			file: []string{"-p", "--project"}},
		{names: []string{"pylint"}, files: []string{".pylintrc", "pylintrc", "pyproject.toml", "setup.cfg"},
			file: []string{"--rcfile"}},
		{names: []string{"flake8"}, files: []string{".flake8", "setup.cfg", "tox.ini"}, file: []string{"--config"}},
		{names: []string{"black", "isort"}, files: []string{"pyproject.toml", ".isort.cfg", "setup.cfg"},
			file: []string{"--config", "--settings"}},
		{names: []string{"coverage"}, files: []string{".coveragerc", "pyproject.toml", "setup.cfg", "tox.ini"},
			file: []string{"--rcfile"}, paths: []string{"run"}},
		{names: []string{"rubocop"}, files: []string{".rubocop.yml"}, file: []string{"-c", "--config"}},
		{names: []string{"shellcheck"}, files: []string{".shellcheckrc", "shellcheckrc"}, file: []string{"--rcfile"}},
		{names: []string{"bazel", "bazelisk"}, files: []string{".bazelrc", ".bazelversion", ".bazeliskrc", "MODULE.bazel",
			"WORKSPACE", "WORKSPACE.bazel"}},
	}
}

// webTools are those of JavaScript and TypeScript.
func webTools() []tool {
	return []tool{
		{names: []string{"tsc"}, files: []string{"tsconfig.json"}, file: []string{"-p", "--project"}},
		{names: []string{"biome"}, files: named("biome", "json", "jsonc"), file: []string{"--config-path"}},
		{names: []string{"prettier"}, files: slices.Concat([]string{"package.json", ".prettierrc", ".prettierignore"},
			named(".prettierrc", "json", "yml", "yaml", "toml"), scripts(".prettierrc"), scripts("prettier.config")),
			file: []string{"--config", "--ignore-path"}},
		{names: []string{"mocha"}, files: slices.Concat([]string{"package.json"},
			named(".mocharc", "js", "cjs", "mjs", "json", "jsonc", "yml", "yaml")), file: []string{"--config"}},
		{names: []string{"playwright"}, files: scripts("playwright.config"), file: []string{"-c", "--config"}},
		{names: []string{"cypress"}, files: scripts("cypress.config"), file: []string{"-C", "--config-file"}},
		{names: []string{"jest"}, files: slices.Concat([]string{"package.json", "jest.config.json"}, scripts("jest.config")),
			file: []string{"-c", "--config"}},
		{names: []string{"vitest", "vite"}, files: slices.Concat(scripts("vitest.config"), scripts("vite.config"),
			scripts("vitest.workspace")), file: []string{"-c", "--config"}},
		{names: []string{"eslint"}, files: slices.Concat([]string{".eslintrc", ".eslintignore"}, scripts("eslint.config"),
			named(".eslintrc", "js", "cjs", "json", "yml", "yaml")), file: []string{"-c", "--config"}},
	}
}

// named returns the names that a tool's settings may have, by their format.
func named(base string, endings ...string) (out []string) {
	for _, e := range endings {
		out = append(out, base+"."+e)
	}
	return out
}

// scripts is named for settings that are JavaScript or TypeScript.
func scripts(base string) []string { return named(base, "js", "mjs", "cjs", "ts", "mts", "cts") }

func toolOf(name string) (tool, bool) {
	for _, t := range slices.Concat(tools(), linters(), webTools()) {
		if slices.Contains(t.names, name) {
			return t, true
		}
	}
	return tool{}, false
}

// tool adds the files that a well-known tool goes by, and the command behind it.
func (s *starts) tool(t tool, args []string, depth int) {
	if len(args) > 0 && slices.Contains(t.run, "") {
		s.toolFiles(t)
		s.command(line{words: afterOptions(args)}, depth+1)
		return
	}
	outer := slices.Clone(s.dirs)
	for i, a := range args {
		option, value, joined := strings.Cut(a, "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		if len(a) > 2 && a[0] == '-' && a[1] != '-' { // -Cdir
			if option = a[:2]; !joined {
				value = a[2:]
			}
		}
		switch {
		case slices.Contains(t.dir, option) && value != "":
			s.enter(value)
		case slices.Contains(t.file, option) && value != "":
			s.file(value)
		}
	}
	s.toolFiles(t)
	for i, a := range args {
		switch {
		case slices.Contains(t.run, a):
			s.command(line{words: afterOptions(args[i+1:])}, depth+1)
		case slices.Contains(t.paths, a) || i == 0 && slices.Contains(t.paths, "") && strings.Contains(a, "/"):
			if a == "run" {
				args = args[i+1:]
			}
			if rest := afterOptions(args); len(rest) > 0 &&
				(strings.Contains(rest[0], "/") || strings.Contains(rest[0], ".") || strings.ContainsRune(rest[0], hole)) &&
				rest[0] != "." {
				s.file(rest[0])
				s.folder(rest[0])
			} else if len(rest) > 0 && rest[0] == "." {
				s.unknown("go run . runs every file of the folder")
			}
		default:
			continue
		}
		break
	}
	s.dirs = outer
}

func (s *starts) toolFiles(t tool) {
	for _, f := range t.files {
		s.file(f)
	}
}

// afterOptions leaves out the options in front; of those, a value that is apart is not known of.
func afterOptions(args []string) []string {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		args = args[1:]
	}
	return args
}
