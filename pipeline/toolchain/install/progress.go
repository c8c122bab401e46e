package install

import (
	"regexp"
	"strconv"
	"sync"
	"time"
)

// Progress describes how far an install is.
type Progress struct {
	Stage string // "fetching numpy 2.2.6, package 7"
	Bytes int64  // of packages that have arrived; 0 if no package has to
}

// pollBytes is how often the received bytes are counted.
const pollBytes = 500 * time.Millisecond

// fetching follows the progress of pip: by its output, and by the files in its download folder.
type fetching struct {
	folder string
	tell   func(Progress)

	mu       sync.Mutex
	stage    string
	packages int
}

var (
	collecting = regexp.MustCompile(`^Collecting ([^= ]+)==([^ ;]+)`)
	installing = regexp.MustCompile(`^Installing collected packages:`)
)

// line reads a line that pip printed.
func (f *fetching) line(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if found := collecting.FindStringSubmatch(text); found != nil {
		f.packages++
		f.stage = "fetching " + found[1] + " " + found[2] + ", package " + strconv.Itoa(f.packages)
		f.report()
	} else if installing.MatchString(text) {
		f.stage = "unpacking " + strconv.Itoa(f.packages) + " packages"
		f.report()
	}
}

func (f *fetching) report() {
	if f.stage == "" {
		return
	}
	bytes, err := treeSize(f.folder)
	if err != nil {
		bytes = 0 // a file was moved meanwhile
	}
	f.tell(Progress{Stage: f.stage, Bytes: bytes})
}

// poll counts bytes until done is closed.
func (f *fetching) poll(done <-chan struct{}) {
	ticker := time.NewTicker(pollBytes)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f.mu.Lock()
			f.report()
			f.mu.Unlock()
		case <-done:
			return
		}
	}
}
