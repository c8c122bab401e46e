package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed assets templates
var embedded embed.FS

const assetsPath = "/assets/"

// asset is a file that browsers keep for good, since its name changes with its bytes.
type asset struct {
	mediaType string
	data      []byte
}

// assets are the files by the names under which they are served, and those names by file.
type assets struct {
	files map[string]asset
	names map[string]string
}

// mediaTypes are those of the assets, by the ending of the file.
func mediaTypes() map[string]string {
	return map[string]string{
		".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	}
}

func readAssets() (assets, error) {
	all := assets{files: make(map[string]asset), names: make(map[string]string)}
	entries, err := fs.ReadDir(embedded, "assets")
	if err != nil {
		return all, err
	}
	for _, e := range entries {
		data, err := embedded.ReadFile("assets/" + e.Name())
		if err != nil {
			return all, err
		}
		sum := sha256.Sum256(data)
		ending := path.Ext(e.Name())
		name := strings.TrimSuffix(e.Name(), ending) + "." + hex.EncodeToString(sum[:8]) + ending
		all.files[name], all.names[e.Name()] = asset{mediaTypes()[ending], data}, assetsPath+name
	}
	return all, nil
}

// ServeHTTP serves the asset that the path names.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file, ok := a.files[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", file.mediaType)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(file.data) // fails if the reader is gone
}

// parsePages parses each page together with the layout and the parts that pages share.
func parsePages(a assets) (map[string]*template.Template, error) {
	names, err := fs.Glob(embedded, "templates/*.tmpl")
	if err != nil {
		return nil, err
	}
	functions := template.FuncMap{"asset": func(name string) string { return a.names[name] }}
	pages := make(map[string]*template.Template)
	for _, name := range names {
		page := strings.TrimSuffix(path.Base(name), ".tmpl")
		if page == "layout" || page == "parts" {
			continue
		}
		t, err := template.New(page).Funcs(functions).ParseFS(embedded, "templates/layout.tmpl", "templates/parts.tmpl", name)
		if err != nil {
			return nil, err
		}
		pages[page] = t
	}
	return pages, nil
}
