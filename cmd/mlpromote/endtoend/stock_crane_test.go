//go:build cgo

package endtoend

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// crane is what CI scripts copy images with.
func TestCrane(t *testing.T) {
	t.Parallel()
	crane := newStock(t, "crane")
	s := serveEmpty(t)
	content := random(300_000)
	crane.writeFile(t, "first.tar", tarOf(t, "first.txt", []byte("the first layer\n")))
	crane.writeFile(t, "second.tar", tarOf(t, "second.bin", content))
	image := s.Host() + "/staging/crane/image"
	pushed := crane.must(t, "append", "-f", "first.tar,second.tar", "-t", image+":1")
	digest := pushed[strings.Index(pushed, "@")+1:]
	for name, test := range map[string]func(*testing.T){
		"pull as docker does": func(t *testing.T) {
			wantWords(t, "digest", crane.must(t, "digest", image+":1"), digest)
			crane.must(t, "validate", "--remote", image+":1")
			crane.must(t, "pull", image+":1", "image.tar")
			crane.must(t, "validate", "--tarball", "image.tar")
			crane.must(t, "export", image+":1", "files.tar")
			if files, err := os.ReadFile(filepath.Join(crane.dir, "files.tar")); err != nil || !bytes.Contains(files, content) {
				t.Errorf("the files of the image are %d bytes without the content, error %v", len(files), err)
			}
			if config := crane.must(t, "config", image+":1"); !strings.Contains(config, "diff_ids") {
				t.Errorf("the config is %s", config)
			}
		},
		"push what was pulled": func(t *testing.T) {
			crane.must(t, "pull", "--format", "oci", image+":1", "layout")
			wantWords(t, "push of the same image", crane.must(t, "push", "layout", s.Host()+"/staging/crane/again:1"), s.Host()+"/staging/crane/again@"+digest)
		},
		"copy by mounts": func(t *testing.T) {
			_, told, err := crane.try(t, nil, "copy", image+":1", s.Host()+"/staging/crane/copy:1")
			if err != nil || strings.Count(told, "mounted blob: ") != 3 {
				t.Errorf("copy: %v, want the config and two layers mounted\n%s", err, told)
			}
			crane.must(t, "validate", "--remote", s.Host()+"/staging/crane/copy:1")
		},
		"tags and deletion": func(t *testing.T) {
			own := s.Host() + "/staging/crane/tags"
			crane.must(t, "copy", image+":1", own+":1")
			for _, tag := range []string{"2", "3"} {
				crane.must(t, "tag", own+":1", tag)
			}
			crane.must(t, "delete", own+":2")
			wantWords(t, "tags", crane.must(t, "ls", own), "1", "3")
			crane.must(t, "delete", own+"@"+digest)
			wantWords(t, "tags after the manifest is deleted", crane.must(t, "ls", own))
			crane.fails(t, "MANIFEST_UNKNOWN", "digest", own+":1")
		},
		"index": func(t *testing.T) {
			own := s.Host() + "/staging/crane/index"
			crane.must(t, "copy", image+":1", own+":1")
			crane.must(t, "mutate", own+":1", "--label", "a=b", "-t", own+":2")
			crane.must(t, "index", "append", "-m", own+":1", "-m", own+":2", "-t", own+":both")
			crane.must(t, "validate", "--remote", own+":both")
			crane.must(t, "copy", own+":both", s.Host()+"/staging/crane/copied:both")
			wantWords(t, "digest of the copy", crane.must(t, "digest", s.Host()+"/staging/crane/copied:both"), crane.must(t, "digest", own+":both"))
		},
		"a protected environment": func(t *testing.T) {
			prod := s.Host() + "/prod/crane/image"
			crane.fails(t, "DENIED: "+protectedSays, "copy", image+":1", prod+":1")
			crane.fails(t, "DENIED: "+protectedSays, "append", "-f", "first.tar", "-t", prod+":1")
			crane.fails(t, "DENIED: "+protectedSays, "delete", prod+":1")
			crane.fails(t, "DENIED: repository elsewhere/image: ", "copy", image+":1", s.Host()+"/elsewhere/image:1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}
