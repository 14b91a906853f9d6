package forgestub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
)

// GH is the program gh in this process, for tests that ask thousands of times: it takes gh's
// arguments (of `gh api --include`) and prints what gh prints.
func (f *Forge) GH(ctx context.Context, args []string, in []byte, out io.Writer) (err error) {
	if !slices.Equal(args[:min(len(args), 3)], []string{"api", "--include", "--method"}) {
		return fmt.Errorf("gh plays no %v", args)
	}
	path := "v3/" + args[len(args)-1]
	if path == "v3/graphql" {
		path = "graphql"
	}
	r, err := http.NewRequestWithContext(ctx, args[3], "https://forge/api/"+path, bytes.NewReader(in))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "token "+Token)
	if i := slices.Index(args, "--header"); i > 0 {
		name, value, _ := strings.Cut(args[i+1], ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	dropped := f.serve(w, r)
	if ctx.Err() != nil || dropped && w.Body.Len() == 0 {
		return errors.New("unexpected EOF")
	}
	fmt.Fprintf(out, "HTTP/1.1 %d %s\r\n", w.Code, http.StatusText(w.Code))
	if err := w.Header().Write(out); err != nil {
		return err
	}
	fmt.Fprintf(out, "\r\n%s", w.Body)
	if dropped || w.Code > 299 {
		return errors.New("exit status 1")
	}
	return nil
}

// serve answers a request; it reports whether the connection ended before the answer did.
func (f *Forge) serve(w http.ResponseWriter, r *http.Request) (dropped bool) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			dropped = true
		default:
			panic(p)
		}
	}()
	f.ServeHTTP(w, r)
	return false
}
