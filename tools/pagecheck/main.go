// Command pagecheck opens pages in Chromium and says what is wrong with them: what axe-core finds by the rules of
// WCAG 2.2 AA, errors of the console, violations of the content policy, requests to other hosts, pages that are
// too large, that are wider than 320 pixels (which are 1280 at 400 %) or than paper, and where Tab does not reach everything.
//
// With -walk it does what people do on pages instead: the steps in a file, each with a browser of its own for whoever does it.
// With -eval it prints what an expression of JavaScript is on a page; -flags are further flags of Chromium.
//
//	pagecheck -axe node_modules/axe-core/axe.min.js [-colors light,dark,forced] URL...
//	pagecheck -walk steps.json
//	pagecheck -eval EXPRESSION [-flags NAME=VALUE,...] URL
package main

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// maxTransfer is the maximum size in bytes of a page with everything that it loads.
const maxTransfer = 100 << 10

// rules are the tags of axe-core. Rules of WCAG 2.2 run only if they are named.
const rules = `{resultTypes: ["violations"], runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}}`

func main() {
	axe := flag.String("axe", "", "file of axe-core")
	colors := flag.String("colors", "light", "light, dark and forced, separated by commas")
	walk := flag.String("walk", "", "file with steps to do")
	trusted := flag.String("trust", "", "file with a certificate that a service may have, beside those that all browsers trust")
	expression := flag.String("eval", "", "expression to print")
	flags := flag.String("flags", "", "flags of Chromium, separated by commas")
	flag.Parse()
	if *expression != "" {
		if err := runEval(*expression, flag.Args(), strings.FieldsFunc(*flags, func(r rune) bool { return r == ',' })); err != nil {
			fmt.Fprintln(os.Stderr, "pagecheck:", err)
			os.Exit(2)
		}
		return
	}
	var findings []string
	var err error
	if *walk != "" {
		findings, err = runWalk(*walk, *trusted)
	} else {
		findings, err = run(*axe, strings.Split(*colors, ","), flag.Args())
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "pagecheck:", err)
		os.Exit(2)
	case len(findings) > 0:
		os.Exit(1)
	}
	fmt.Printf("%d pages, nothing found\n", flag.NArg())
}

func run(axe string, colors, pages []string) ([]string, error) {
	script, err := os.ReadFile(axe)
	if err != nil {
		return nil, err
	}
	ctx, cancel, err := browser(10*time.Minute, "")
	if err != nil {
		return nil, err
	}
	defer cancel()
	var all []string
	for _, page := range pages {
		for _, color := range colors {
			found, err := check(ctx, page, color, string(script))
			if err != nil {
				return all, fmt.Errorf("%s in %s: %w", page, color, err)
			}
			for _, f := range found {
				all = append(all, page+" in "+color+": "+f)
			}
		}
	}
	return all, nil
}

// browser starts Chromium, with more flags as NAME or NAME=VALUE, which ends with the context. Pages have contexts of
// their own.
func browser(limit time.Duration, trusted string, flags ...string) (context.Context, context.CancelFunc, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true))
	for _, f := range flags {
		if name, value, ok := strings.Cut(f, "="); ok {
			options = append(options, chromedp.Flag(name, value))
		} else {
			options = append(options, chromedp.Flag(name, true))
		}
	}
	if trusted != "" {
		key, err := publicKey(trusted)
		if err != nil {
			return nil, nil, err
		}
		options = append(options, chromedp.Flag("ignore-certificate-errors-spki-list", key))
	}
	ctx, stop := context.WithTimeout(context.Background(), limit)
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	ctx, cancel := chromedp.NewContext(ctx)
	all := func() { cancel(); end(); stop() }
	if err := chromedp.Run(ctx); err != nil {
		all()
		return nil, nil, err
	}
	return ctx, all, nil
}

// publicKey is the hash of the public key of a certificate, as Chromium takes it.
func publicKey(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return "", fmt.Errorf("%s has no certificate in PEM", file)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(hash[:]), nil
}

// watch collects what a page does while it loads.
type watch struct {
	sync.Mutex
	host     string
	page     string   // whose own answer may be a refusal
	others   []string // hosts that may be asked too
	refusals bool     // answers such as 401 and 409 are expected
	bytes    float64
	found    []string
}

func (w *watch) event(event any) {
	w.Lock()
	defer w.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if strings.HasPrefix(e.Request.URL, "about:") {
			return
		}
		if u, err := url.Parse(e.Request.URL); err != nil || u.Host != w.host && u.Scheme != "data" && !slices.Contains(w.others, u.Host) {
			w.found = append(w.found, "requests "+e.Request.URL)
		}
	case *network.EventLoadingFinished:
		w.bytes += e.EncodedDataLength
	case *network.EventLoadingFailed:
		if !e.Canceled {
			w.found = append(w.found, "a request failed: "+e.ErrorText)
		}
	case *log.EventEntryAdded: // also violations of the content policy
		if e.Entry.Level == log.LevelVerbose { // advice
			return
		}
		if (w.refusals || e.Entry.URL == w.page) && e.Entry.Source == log.SourceNetwork && strings.Contains(e.Entry.Text, "status of 4") {
			return
		}
		w.found = append(w.found, "console: "+e.Entry.Text)
	case *runtime.EventExceptionThrown:
		w.found = append(w.found, "exception: "+e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		w.found = append(w.found, "console: "+string(e.Type))
	}
}

// violation is what axe-core reports.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML string `json:"html"`
	} `json:"nodes"`
}

func check(parent context.Context, page, color, script string) ([]string, error) {
	ctx, cancel := chromedp.NewContext(parent)
	defer cancel()
	address, err := url.Parse(page)
	if err != nil {
		return nil, err
	}
	w := &watch{host: address.Host, page: page}
	chromedp.ListenTarget(ctx, w.event)
	media := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: strings.Replace(color, "forced", "light", 1)}}
	if color == "forced" {
		media = append(media, &emulation.MediaFeature{Name: "forced-colors", Value: "active"})
	}
	var violations, zoomed []violation
	var wide, lost, cut, focused, tabbed string
	wait := func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
	err = chromedp.Run(ctx,
		network.Enable(), log.Enable(), emulation.SetEmulatedMedia().WithFeatures(media),
		emulation.SetFocusEmulationEnabled(true), chromedp.EmulateViewport(1280, 900), chromedp.Navigate(page),
		chromedp.Evaluate(script+"; true", nil),
		chromedp.Evaluate(`axe.run(document, `+rules+`).then((r) => r.violations)`, &violations, wait),
		chromedp.Evaluate(walk, &focused),
		chromedp.ActionFunc(func(ctx context.Context) error { return tabs(ctx, &tabbed) }),
		// 1280 by 1024 pixels at 400 % are 320 by 256.
		chromedp.EmulateViewport(320, 256, chromedp.EmulateScale(4)), chromedp.Evaluate(overflow, &wide), chromedp.Evaluate(cutOff, &lost),
		chromedp.Evaluate(`axe.run(document, `+rules+`).then((r) => r.violations)`, &zoomed, wait),
		emulation.SetEmulatedMedia().WithMedia("print"), chromedp.EmulateViewport(paper, 1000), chromedp.Evaluate(overflow, &cut),
	)
	if err != nil {
		return nil, err
	}
	w.Lock()
	defer w.Unlock()
	found := w.found
	for zoom, all := range map[string][]violation{"": violations, "at 400 %: ": zoomed} {
		for _, v := range all {
			first, _ := json.Marshal(v.Nodes[0].HTML)
			found = append(found, fmt.Sprintf("%s%s: %s, %d times, first at %.300s", zoom, v.ID, v.Help, len(v.Nodes), first))
		}
	}
	if lost != "" {
		found = append(found, "at 400 % a text is cut off: "+lost)
	}
	if wide != "" {
		found = append(found, "at 320 pixels it is wider than the window: "+wide)
	}
	if cut != "" {
		found = append(found, "printed, it is wider than the paper: "+cut)
	}
	for _, f := range []string{focused, tabbed} {
		if f != "" {
			found = append(found, f)
		}
	}
	if w.bytes > maxTransfer {
		found = append(found, fmt.Sprintf("it loads %.0f bytes: want at most %d", w.bytes, maxTransfer))
	}
	return found, nil
}

// paper is the width of A4 in pixels of CSS, without margins of 1 cm.
const paper = 718

// tabs presses Tab until the focus has been on everything that can have it, and says what it missed.
func tabs(ctx context.Context, found *string) error {
	var count, at int
	if err := chromedp.Evaluate(reachable+`; document.activeElement.blur(); reachable().length`, &count).Do(ctx); err != nil {
		return err
	}
	reached := map[int]bool{}
	for range count + 10 { // a browser also stops at what scrolls
		if err := chromedp.KeyEvent("\t").Do(ctx); err != nil {
			return err
		}
		if err := chromedp.Evaluate(`reachable().indexOf(document.activeElement)`, &at).Do(ctx); err != nil {
			return err
		}
		if reached[at] = true; at == count-1 {
			break
		}
	}
	delete(reached, -1)
	if len(reached) != count {
		*found = fmt.Sprintf("Tab reaches %d of %d things", len(reached), count)
	}
	return nil
}

// reachable lists what Tab reaches. Arrows reach radio buttons.
const reachable = `var reachable = () => [...document.querySelectorAll(
  "a[href], button, input:not([type=hidden]), select, textarea, summary, pre[tabindex]")].filter((e) => e.checkVisibility() && e.type !== "radio")`

// overflow names an element that makes the page wider than the window.
const overflow = `(() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= wide) return "";
  const one = [...document.querySelectorAll("main *")].find((e) => e.getBoundingClientRect().right > wide + 1);
  return one ? one.outerHTML.slice(0, 200) : "unknown";
})()`

// cutOff names an element whose text does not fit and cannot be scrolled to.
const cutOff = `(() => {
  const one = [...document.querySelectorAll("main *, header *, footer *")].find((e) => {
    const style = getComputedStyle(e);
    return e.offsetParent && style.overflowX === "hidden" && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 1 && e.innerText;
  });
  return one ? one.outerHTML.slice(0, 200) : "";
})()`

// walk gives the focus to each thing that can have it, and says which one does not show that.
const walk = `(() => {
  const all = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, pre[tabindex]")].filter((e) => e.checkVisibility());
  if (!all.length || !all[0].classList.contains("skip")) return "the first thing that a keyboard reaches is not the link to the content";
  for (const e of all) {
    e.focus({focusVisible: true});
    if (document.activeElement !== e) return "it takes no focus: " + e.outerHTML.slice(0, 200);
    const style = getComputedStyle(e);
    if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 1) return "its focus is not visible: " + e.outerHTML.slice(0, 200);
  }
  return "";
})()`
