package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"html/template"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sluice/internal/git"
	"sluice/internal/review"
	"sluice/internal/show"
	"sluice/internal/text"
	"sluice/web/colour"
	"sluice/web/patch"
	"sluice/web/visible"
)

// changes are what the work changes, as far as one page shows it.
type changes struct {
	patch.Summary
	HTML  template.HTML // web/patch and web/visible made it
	Since bool          // only those since the attempt before
	Twice bool          // there is an attempt before
	Part  bool          // of one file, or of the list: a link leads back to all
	Fault string
}

// diff is a diff that can be read several times.
type diff func(ctx context.Context, read func(io.Reader) error) error

// changes renders the part of the changes that the address asks for, with the comments of the page: all,
// one file from a row on, the rest of a long line, or the list from a file on.
func (s *Server) changes(r *http.Request, at repo, p *gatePage) (err error) {
	ctx, sh, c := r.Context(), p.Shown, &p.Changes
	*c = changes{}
	c.Twice = sh.Again() && sh.Taken != ""
	c.Since = c.Twice && r.URL.Query().Get("since") != ""
	if len(sh.Changed) == 0 && !c.Since {
		return nil
	}
	g, err := at.Open(ctx)
	if err != nil {
		return err
	}
	defer g.Close()
	d, err := diffOf(ctx, g, sh, c.Since)
	if err == nil {
		err = s.part(ctx, r, g, at, d, p, c)
	}
	if err != nil && ctx.Err() == nil {
		c.Fault, err = "the changes cannot be read: "+text.Message(err.Error()), nil
	}
	return err
}

// diffOf returns the changes of what was taken, or of a folder in which an attempt is at work.
func diffOf(ctx context.Context, g *git.Repo, sh *show.Shown, since bool) (diff, error) {
	from, to, err := sh.Ends(ctx, g, since)
	if err != nil {
		return nil, err
	}
	if since { // comments are on lines of what is judged
		to = sh.Taken
	}
	if to != "" {
		return func(ctx context.Context, read func(io.Reader) error) error {
			return git.StreamPatch(ctx, g, from, to, git.Look{}, read)
		}, nil
	}
	raw, _, err := show.Patch(ctx, g, sh, show.Diff{Most: show.MaxPatch})
	return func(_ context.Context, read func(io.Reader) error) error { return read(bytes.NewReader(raw)) }, err
}

// coloursIn is how long a page may take for its colours. Files that are made to be slow have none then.
const coloursIn = 5 * time.Second

// part renders what the address asks for.
func (s *Server) part(ctx context.Context, r *http.Request, g *git.Repo, at repo, d diff, p *gatePage,
	c *changes) error {
	q := r.URL.Query()
	limited, stop := context.WithTimeout(ctx, coloursIn)
	defer stop()
	o := patch.Options{Colour: s.colours(limited, g, at)}
	mark, asked := patch.ParseID(q.Get("at"))
	var on patch.Found
	if asked {
		err := d(ctx, func(r io.Reader) (err error) {
			on, err = patch.Find(r, mark)
			return err
		})
		if err != nil {
			return err
		}
		o.Open, o.From = mark.File, on.Row
	}
	o.Below = below(mark, on.Line, p)
	if c.Since {
		o.Query = "since=1"
	}
	open, opened := patch.ParseID(q.Get("open"))
	line, clipped := patch.ParseID(q.Get("line"))
	list, _ := strconv.Atoi(q.Get("list"))
	from, _ := strconv.ParseInt(q.Get("from"), 10, 64)
	var b bytes.Buffer
	c.Part = true
	err := d(ctx, func(r io.Reader) (err error) {
		switch {
		case clipped:
			return patch.Rest(&b, r, line, max(from, 0), o)
		case opened && from > 0:
			_, err = patch.File(&b, r, open.File, int(min(from, math.MaxInt32)), o)
		case list > 0:
			c.Summary, err = patch.List(&b, r, list, o)
		default:
			if c.Part = false; opened {
				o.Open = open.File
			}
			c.Summary, err = patch.Page(&b, r, o)
		}
		return err
	})
	if errors.Is(err, patch.ErrNone) {
		err = errNotFound{"the changes have no such line: it may be from another round"}
	}
	c.HTML = template.HTML(b.String())
	return err
}

// colours returns the colours of the files that are opened.
func (s *Server) colours(ctx context.Context, g *git.Repo, at repo) func(*patch.Change) (old, now patch.Colours) {
	of := func(blob, path string) patch.Colours {
		if strings.Trim(blob, "0") == "" {
			return nil
		}
		lines, err := s.painter.Lines(ctx, colour.Key{Blob: at.Root + "\x00" + blob, Path: path},
			func(ctx context.Context) ([]byte, error) { return git.BlobStart(ctx, g, blob, colour.MaxBytes) })
		if err != nil { // what has no colours is shown without
			return nil
		}
		return lines.At
	}
	return func(c *patch.Change) (old, now patch.Colours) {
		if c.Added+c.Removed > colour.MaxLines {
			return nil, nil
		}
		before := cmp.Or(c.Old, c.Path)
		return of(c.OldBlob, before), of(c.Blob, c.Path)
	}
}

// below returns the rows of comments below a line: those that are kept, and an empty one at the line
// that the address names. A comment on a removed line is on the line before it.
func below(at patch.ID, on review.Line, p *gatePage) func(dst []byte, c *patch.Change, id patch.ID) []byte {
	if !p.Open {
		return nil
	}
	return func(dst []byte, c *patch.Change, id patch.ID) []byte {
		line := id.Line
		if id.Old {
			line = on.New
		}
		if id.Old && id != at || c.Path == "" {
			return dst
		}
		said, here, file := "", id == at, ""
		if here || len(p.Drafts) > 0 { // as a form sends it back
			file = html.UnescapeString(visible.String(c.Path))
		}
		for _, k := range p.Drafts {
			if k.File == file && k.Line == line && !id.Old {
				said, here = k.Text, true
			}
		}
		if !here {
			return dst
		}
		return fmt.Appendf(dst, `<tr class="box" id="c-%s"><td class="o"></td><td class="n"></td><td>%s</td></tr>`+"\n", id,
			boxOf(p.URL, id.String(), fmt.Sprintf("%s:%d", file, max(line, 1)), said))
	}
}

// boxOf returns the box for a comment on a line. It belongs to the form of the answer.
func boxOf(url, row, place, said string) string {
	return fmt.Sprintf(`<input type="hidden" form="decide" name="at" value="%s"><label for="t-%s">`+
		`Comment on %s</label><textarea id="t-%s" form="decide" name="c" rows="3" maxlength="4000">%s</textarea>`+
		`<button class="btn" form="decide" formaction="%s/draft" name="row" value="%s">Keep the comment</button>`,
		visible.String(place), row, visible.String(place), row, template.HTMLEscapeString(said), url, row)
}
