package shells

import (
	"strings"
	"testing"
)

// TestStarts: what a command starts from the repo is found as the shell would find it, or it is said that it cannot be.
func TestStarts(t *testing.T) {
	vars := Vars{VarName("test"): "./ci/all && make", VarName("tool"): "tools/x"}
	for _, c := range []struct{ text, files, unknown string }{
		{text: `./ci/gate.sh src/a.go`, files: "ci/gate.sh"},
		{text: `CI=1 python3 -u tools/check.py out.txt && "./tests/run" -v; test -s out.txt`, files: "tests/run tools/check.py"},
		{text: `if timeout 5 tools/slow; then echo src/b.go; fi`, files: "tools/slow"},
		{text: `bash -e 'ci/sec ond.sh'`, files: "ci/sec ond.sh"},
		{text: "go test ./... # ./not/this\ngo vet ./...", files: "go.mod go.work vendor/** vendor/modules.txt"},
		{text: `grep -q "$WORD" out.txt || ! [ -e x ]`, files: ""},
		{text: `sh -c "tools/a; tools/b"`, files: "tools/a tools/b"},
		{text: `bash -ec 'cd sub && ./run'`, files: "run sub/run"},
		{text: `test "$(tools/count x)" = 3`, files: "tools/count"},
		{text: "x=`tools/count 'a b'`", files: "tools/count"},
		{text: `echo "${X:-$(tools/x)}"`, files: "tools/x"},
		{text: `. ci/env.sh; source ./b.sh`, files: "b.sh ci/env.sh"},
		{text: `"$PWD"/ci/a.sh`, files: "ci/a.sh"},
		{text: `$ROOT/ci/a.sh`, files: "**/ci/a.sh"},
		{text: `sh tests/*.sh`, files: "tests/**"},
		{text: `bash ci/{lint,unit}.sh && t/{1..3} && cat {a,b} {} {x} "{c,d}"`, files: "ci/** t/**"},
		{text: `~/bin/check && $HOME/x`, files: ""},
		{text: `/usr/bin/make -C x check`, files: "/usr/bin/make GNUmakefile Makefile makefile x/GNUmakefile x/Makefile x/makefile"},
		{text: `npm run test`, files: ".npmrc package.json"},
		{text: `npx --yes tsx ./tools/x.ts`, files: ".npmrc package.json tools/x.ts tsconfig.json"},
		{text: `go run ./tools/check -v`, files: "go.mod go.work tools/check tools/check/** vendor/** vendor/modules.txt"},
		{text: `go run -tags ci ./tools/check && go test -modfile=ci/go.mod -exec ./ci/run`, files: "ci/go.mod ci/run go.mod go.work tools/check tools/check/** vendor/** vendor/modules.txt"},
		{text: `python tools/check`, files: "tools/check tools/check/__main__.py"},
		{text: `node ci/check`, files: "ci/check ci/check.cjs ci/check.js ci/check.json ci/check.mjs ci/check/index.js ci/check/package.json"},
		{text: `php vendor/bin/phpunit && sh ci/gradlew.sh`, files: "*.gradle *.gradle.kts *.versions.toml build.gradle build.gradle.kts buildSrc/build.gradle buildSrc/build.gradle.kts buildSrc/src/** ci/gradlew.sh gradle.properties gradle/wrapper/gradle-wrapper.jar gradle/wrapper/gradle-wrapper.properties phpunit.xml phpunit.xml.dist settings.gradle settings.gradle.kts vendor/bin/phpunit"},
		{text: `Rscript ci/c.R && java -jar c.jar && julia -e 'exit(1)'`, files: ".Renviron .Rprofile c.jar ci/c.R"},
		{text: `jq -e -f ci/c.jq out.json | awk -fci/c.awk`, files: "ci/c.awk ci/c.jq"},
		{text: `parallel -j 4 ci/a ::: x; fakeroot -- ci/b; trap 'ci/c "$X"' EXIT`, files: "ci/a ci/b ci/c"},
		{text: `uvx ruff check; pipx run nox`, files: ".ruff.toml noxfile.py pyproject.toml ruff.toml uv.toml"},
		{text: `npm ci && npm test`, files: ".npmrc npm-shrinkwrap.json package-lock.json package.json"},
		{text: `pip3 install -r dev/requirements.txt; poetry install`, files: "dev/requirements.txt pdm.lock poetry.lock pyproject.toml setup.cfg setup.py"},
		{text: `bundle install --quiet`, files: ".bundle/config Gemfile Gemfile.lock"},
		{text: `node --run test`, files: "package.json"},
		{text: `bun check.ts; deno -A check/all.ts`, files: ".npmrc bunfig.toml check.ts check.ts/** check/all.ts check/all.ts/** deno.json deno.jsonc package.json"},
		{text: `npx -p typescript tsx tools/x.ts`, files: ".npmrc package.json tools/x.ts tsconfig.json"},
		{text: `coverage run --branch --source src -m tools.check`, files: ".coveragerc pyproject.toml setup.cfg src src/__main__.py tools/check.py tools/check.pyc tools/check.so tools/check/__init__.py tools/check/__init__.pyc tools/check/__init__.so tools/check/__main__.py tox.ini"},
		{text: `uv run --with x pytest "$1"`, files: ".pytest.ini .pytest.toml conftest.py pyproject.toml pytest.ini pytest.toml setup.cfg tox.ini uv.toml"},
		{text: `uv run python tools/x.py`, files: "pyproject.toml tools/x.py uv.toml"},
		{text: `python -m tools.check`, files: "tools/check.py tools/check.pyc tools/check.so tools/check/__init__.py tools/check/__init__.pyc tools/check/__init__.so tools/check/__main__.py"},
		{text: `python3 -c 'import json, tools.x; json.load(open("out.json"))'`, files: "json.py json.pyc json.so json/__init__.py json/__init__.pyc json/__init__.so json/__main__.py tools/x.py tools/x.pyc tools/x.so tools/x/__init__.py tools/x/__init__.pyc tools/x/__init__.so tools/x/__main__.py"},
		{text: `node -e 'require("./ci/x.js")'`, files: "ci/x.js"},
		{text: `node --require ./a.js --test`, files: "a.js"},
		{text: `ruby -r./ci/a -r ./ci/b.rb -e 'require "./c"'`, files: "c c.rb c/** ci/a ci/a.rb ci/b.rb"},
		{text: `gitleaks dir . && npx markdownlint-cli2 docs`, files: ".gitleaks.toml .gitleaksignore .markdownlint-cli2.cjs .markdownlint-cli2.jsonc .markdownlint-cli2.mjs .markdownlint-cli2.yaml .markdownlint.cjs .markdownlint.json .markdownlint.jsonc .markdownlint.mjs .markdownlint.yaml .markdownlint.yml .markdownlintignore .npmrc package.json"},
		{text: `aider --yes --message-file "$1"`, files: ".aider.conf.yml .aider.model.metadata.json .aider.model.settings.yml .env"},
		{text: `hyperfine -w 1 ci/bench src && nu --config=ci/c.nu ci/x.nu "$X"; mytool src/a.go docs/a.md`, files: "ci/bench ci/c.nu ci/x.nu"},
		{text: `sqlite3 out.db < ci/check.sql; git bisect run ci/b; cat src/a.py >x; [ -s src/b.sh ]`, files: "ci/b ci/check.sql"},
		{text: `hyperfine -w 1 'sh ci/a.sh' "ci/b x" && npx concurrently --names=a 'sh ci/c.sh'`, files: ".npmrc ci/a.sh ci/b ci/c.sh package.json"},
		{text: `nix-shell --run 'cd x && sh a.sh'; env --chdir=ci sh b.sh; env --chdir y sh c.sh`, files: "a.sh b.sh c.sh ci/b.sh ci/c.sh ci/y/c.sh default.nix flake.lock flake.nix shell.nix x/a.sh y/c.sh"},
		{text: `docker run --rm -v .:/w img ./ci/x.sh`, files: ".:/w .dockerignore .env Dockerfile ci/x.sh compose.override.yaml compose.yaml compose.yml docker-compose.override.yml docker-compose.yaml docker-compose.yml"},
		{text: `uv run check.py; dart run tool/c.dart`, files: "analysis_options.yaml check.py dart_test.yaml pubspec.yaml pyproject.toml tool/c.dart tool/c.dart/** uv.toml"},
		{text: `cargo run -q -p checks -- all; dotnet run --project ci/Check`, files: "**/checks.rs **/checks/** *.csproj *.fsproj *.props *.rsp *.ruleset *.runsettings *.sln *.slnf *.slnx *.targets *.vbproj .cargo/config .cargo/config.toml .clippy.toml .config/nextest.toml .editorconfig .globalconfig .rustfmt.toml Cargo.toml Makefile.toml NuGet.Config NuGet.config build.rs ci/Check ci/Check/** clippy.toml deny.toml global.json nuget.config rust-toolchain rust-toolchain.toml rustfmt.toml xtask/**"},
		{text: `nix develop -c ./ci/a; direnv exec . ci/b`, files: "ci/a ci/b default.nix flake.lock flake.nix shell.nix"},
		{text: `BASH_ENV=./e.sh bash x.sh`, files: "e.sh e.sh/** x.sh"},
		{text: `RUSTC_WRAPPER=ci/wrap OUT=out/x.txt SRC=src/a.py DEBUG=1 check; export PAGER='sh ci/page.sh'`, files: "ci/page.sh ci/wrap"},
		{text: `PATH=bin:$PATH check`, files: "bin bin/**"},
		{text: `find . -name '*.sh' -exec tools/lint {} \;`, files: "tools/lint"},
		{text: `find . | xargs -n 1 tools/lint`, files: "tools/lint"},
		{text: `env -i A=b tools/x 2>&1 >/dev/null &>log`, files: "tools/x"},
		{text: "cat <<'E' > x\n./not $(not/this)\nE\n./then", files: "then"},
		{text: "cat <<E\n$(./in)\nE", files: "in"},
		{text: `bash < ci/x.sh`, files: "ci/x.sh"},
		{text: `diff <(./a) <(./b)`, files: "a b"},
		{text: `./gradlew test`, files: "*.gradle *.gradle.kts *.versions.toml build.gradle build.gradle.kts buildSrc/build.gradle buildSrc/build.gradle.kts buildSrc/src/** gradle.properties gradle/wrapper/gradle-wrapper.jar gradle/wrapper/gradle-wrapper.properties gradlew settings.gradle settings.gradle.kts"},
		{text: `cargo test`, files: ".cargo/config .cargo/config.toml .clippy.toml .config/nextest.toml .rustfmt.toml Cargo.toml Makefile.toml build.rs clippy.toml deny.toml rust-toolchain rust-toolchain.toml rustfmt.toml xtask/**"},
		{text: `python -m ruff check`, files: ".ruff.toml pyproject.toml ruff.py ruff.pyc ruff.so ruff.toml ruff/__init__.py ruff/__init__.pyc ruff/__init__.so ruff/__main__.py"},
		{text: `golangci-lint run -c ci/lint.yml`, files: ".golangci.json .golangci.toml .golangci.yaml .golangci.yml ci/lint.yml go.mod go.work"},
		{text: `npx tsc -p web/tsconfig.json`, files: ".npmrc package.json tsconfig.json web/tsconfig.json"},
		{text: `xvfb-run -e log ./ci/screens; cross-env CI=1 tools/a && gosu nobody tools/b`, files: "ci/screens tools/a tools/b"},
		{text: `case "$X" in a|b/c) ./one ;; *|z) false;; "$Y") (./two) ;; esac || ./three`, files: "one three two"},
		{text: `case $X in
  *) echo;;
esac
(cd a && ./b)`, files: "a/b b"},
		{text: `sh -c "$SLUICE_VAR_TEST"`, files: "GNUmakefile Makefile ci/all makefile"},
		{text: `${SLUICE_VAR_TOOL} "$SLUICE_VAR_TEST"`, files: "ci/all tools/x"},
		{text: `for f in a b; do echo "$f"; done`},

		{text: `$TOOL x`, unknown: `"…"`},
		{text: `sh "$SCRIPT"`, unknown: `"…"`},
		{text: `eval "$X"`, unknown: "eval"},
		{text: `eval ./a`, files: "a"},
		{text: `cat x | sh`, unknown: "what sh reads"},
		{text: `sh -c "$CMD"`, unknown: "what sh is given"},
		{text: `find . -name '*.sh' -exec sh {} \;`, unknown: `"…"`},
		{text: `cd "$D" && make`, files: "**/GNUmakefile **/Makefile **/makefile GNUmakefile Makefile makefile"},
		{text: strings.Repeat("$(", 50), unknown: "commands within commands"},
		{text: strings.Repeat("x ", MaxText), unknown: "more than"},
	} {
		got := Starts([]string{"sh", "-c", c.text}, vars)
		if files := strings.Join(got.Files, " "); files != c.files {
			t.Errorf("%.60s\nstarts %s\nwant   %s", c.text, files, c.files)
		}
		if (got.Unknown == "") != (c.unknown == "") || !strings.Contains(got.Unknown, c.unknown) {
			t.Errorf("%.60s: unknown %q, want %q", c.text, got.Unknown, c.unknown)
		}
	}
	for _, c := range []struct{ argv, files, unknown string }{
		{argv: "./ci/gate.sh|$X", files: "ci/gate.sh"},
		{argv: "make|test", files: "GNUmakefile Makefile makefile"},
		{argv: "tools/${{vars.t}}.sh", files: "tools/**"},
		{argv: "${{ vars.tool }}", files: "tools/x"},
		{argv: "${{ vars.t }}", unknown: `"…"`},
		{argv: "bash|-c|./a \"$1\"|x", files: "a"},
		{argv: "env|X=1|python3|x.py", files: "x.py"},
		{argv: "env|-S|./a b", files: "a"},
		{argv: "sh|$X", files: "$X"}, // no shell has parsed it
	} {
		got := Starts(strings.Split(c.argv, "|"), vars)
		if files := strings.Join(got.Files, " "); files != c.files || (got.Unknown == "") != (c.unknown == "") || !strings.Contains(got.Unknown, c.unknown) {
			t.Errorf("%s: %s, unknown %q; want %s, %q", c.argv, files, got.Unknown, c.files, c.unknown)
		}
	}
}

// TestBelow: the files of a tool that reads them in folders below by itself count there too.
func TestBelow(t *testing.T) {
	for text, want := range map[string]string{
		"go test ./...": "go.mod go.work vendor/modules.txt", "cd web && npm test": "package.json node_modules/** .npmrc", "npx make": "node_modules/**", "coverage run -m pytest": "pytest.ini .pytest.ini pytest.toml .pytest.toml pyproject.toml tox.ini setup.cfg conftest.py",
		"mvn test; mvn verify": "pom.xml .mvn/**", "make && ./ci/gate.sh": "",
	} {
		if got := strings.Join(Starts([]string{"sh", "-c", text}, nil).Below, " "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func FuzzStarts(f *testing.F) {
	for _, s := range []string{"a <<E\n$(", "$((1)", "`\\", "a>&", "${", "'", "\"$", "a\\", "<(", "<<-'X'\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Starts([]string{"sh", "-c", text}, nil)
		for _, file := range got.Files {
			if strings.ContainsRune(file, hole) {
				t.Fatalf("%q: %q", text, file)
			}
		}
	})
}
