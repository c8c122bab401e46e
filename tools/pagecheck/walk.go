package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// step is one thing that somebody does in a browser, or looks for.
type step struct {
	// Who does it. Each has a browser of their own, without cookies at first.
	Who string `json:"who"`
	// Do is one of:
	//   - open: go to the address Text
	//   - press: press the link or button that says Text, and wait for the page that it leads to
	//   - type: type Text into the field Name, in place of what is there
	//   - want, lack: the page says Text, or does not
	//   - value: the field Name has the value Text
	//   - scripts: Text is on or off
	//   - forget: delete all cookies
	//   - fits: the page is no wider than a window of 320 pixels
	//   - allow: the browser may also ask the host Text
	Do   string `json:"do"`
	Name string `json:"name"`
	Text string `json:"text"`
}

// patience is how long a step may take.
const patience = 20 * time.Second

// runWalk does the steps in a file, and returns what went wrong. The first step that cannot be done ends it.
func runWalk(file, trusted string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var steps []step
	if err := json.Unmarshal(data, &steps); err != nil {
		return nil, err
	}
	ctx, cancel, err := browser(5*time.Minute, trusted)
	if err != nil {
		return nil, err
	}
	defer cancel()
	people := make(map[string]*person)
	var found []string
	for i, s := range steps {
		p, ok := people[s.Who]
		if !ok {
			if p, err = newPerson(ctx); err != nil {
				return found, err
			}
			defer p.close()
			people[s.Who] = p
		}
		if err := p.do(s); err != nil {
			found = append(found, fmt.Sprintf("step %d: %s %s %s %q: %v", i+1, s.Who, s.Do, s.Name, s.Text, err))
			break
		}
	}
	for who, p := range people {
		p.watch.Lock()
		for _, f := range p.watch.found {
			found = append(found, who+": "+f)
		}
		p.watch.Unlock()
	}
	return found, nil
}

// person is somebody with a browser.
type person struct {
	ctx   context.Context
	close context.CancelFunc
	watch *watch
}

// newPerson opens a window that shares no cookies with others.
func newPerson(parent context.Context) (*person, error) {
	browser := cdp.WithExecutor(parent, chromedp.FromContext(parent).Browser)
	apart, err := target.CreateBrowserContext().Do(browser)
	if err != nil {
		return nil, err
	}
	window, err := target.CreateTarget("about:blank").WithBrowserContextID(apart).WithNewWindow(true).Do(browser)
	if err != nil {
		return nil, err
	}
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithTargetID(window))
	p := &person{ctx, cancel, &watch{refusals: true}}
	chromedp.ListenTarget(ctx, p.watch.event)
	return p, chromedp.Run(ctx, network.Enable(), log.Enable(), emulation.SetFocusEmulationEnabled(true), chromedp.EmulateViewport(1280, 900))
}

func (p *person) do(s step) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	switch s.Do {
	case "open":
		address, err := url.Parse(s.Text)
		if err != nil {
			return err
		}
		p.watch.Lock()
		p.watch.host = address.Host
		p.watch.Unlock()
		return chromedp.Run(ctx, chromedp.Navigate(s.Text))
	case "allow":
		p.watch.Lock()
		defer p.watch.Unlock()
		p.watch.others = append(p.watch.others, s.Text)
		return nil
	case "press":
		return p.press(ctx, s.Text)
	case "type":
		field := fmt.Sprintf(`document.querySelector('main [name=%q]')`, s.Name)
		return chromedp.Run(ctx, chromedp.Evaluate(field+`.value = ""; `+field+`.focus()`, nil), chromedp.KeyEvent(s.Text))
	case "scripts":
		return chromedp.Run(ctx, emulation.SetScriptExecutionDisabled(s.Text == "off"))
	case "forget":
		return chromedp.Run(ctx, network.ClearBrowserCookies())
	}
	return p.look(ctx, s)
}

// look compares the page with what a step says.
func (p *person) look(ctx context.Context, s step) error {
	var text, value, wide string
	err := chromedp.Run(ctx, chromedp.Evaluate(`document.body.innerText`, &text), chromedp.Evaluate(fmt.Sprintf(`(document.querySelector('main [name=%q]') || {value: ""}).value`, s.Name), &value))
	if err != nil {
		return err
	}
	text = strings.Join(strings.Fields(text), " ")
	switch has := strings.Contains(text, s.Text); {
	case s.Do == "want" && !has, s.Do == "lack" && has:
		return fmt.Errorf("the page says %s", text)
	case s.Do == "value" && value != s.Text:
		return fmt.Errorf("the field has %q; the page says %s", value, text)
	case s.Do == "fits":
		if err := chromedp.Run(ctx, chromedp.EmulateViewport(320, 256), chromedp.Evaluate(overflow, &wide), chromedp.EmulateViewport(1280, 900)); err != nil {
			return err
		}
		if wide != "" {
			return errors.New("it is wider than 320 pixels: " + wide)
		}
	case s.Do != "want" && s.Do != "lack" && s.Do != "value":
		return errors.New("unknown step")
	}
	return nil
}

// pressed finds what says a text, brings it into view, and gives its middle; the page is marked to see that it is replaced.
const pressed = `(() => {
  const says = %q;
  const all = [...document.querySelectorAll("main :is(a[href], button, summary), :is(a[href], button)")];
  const one = all.filter((e) => e.checkVisibility() && e.innerText.trim() === says).sort((a, b) => !a.closest("main") - !b.closest("main"))[0];
  if (!one) return null;
  one.scrollIntoView({block: "center"});
  const box = one.getClientRects()[0];
  window.pressed = true;
  return [box.x + box.width / 2, box.y + box.height / 2];
})()`

// press presses with the mouse, and waits until the page is replaced.
func (p *person) press(ctx context.Context, says string) error {
	var at []float64
	if err := chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf(pressed, says), &at)); err != nil {
		return err
	}
	if len(at) != 2 {
		return errors.New("there is no such link or button")
	}
	if err := chromedp.Run(ctx, chromedp.MouseClickXY(at[0], at[1])); err != nil {
		return err
	}
	for {
		var there bool
		// Between two pages there is nothing to ask.
		err := chromedp.Run(ctx, chromedp.Evaluate(`!window.pressed && document.readyState === "complete"`, &there))
		if err == nil && there {
			return nil
		}
		if ctx.Err() != nil {
			return errors.New("no other page came")
		}
		time.Sleep(20 * time.Millisecond)
	}
}
