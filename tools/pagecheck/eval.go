package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// runEval opens a page, and prints what an expression is there, as JSON. It waits for promises. What the page
// prints on the console goes to standard error.
func runEval(expression string, pages, flags []string) error {
	if len(pages) != 1 {
		return errors.New("-eval: want one page")
	}
	ctx, cancel, err := browser(5*time.Minute, "", flags...)
	if err != nil {
		return err
	}
	defer cancel()
	var mutex sync.Mutex
	chromedp.ListenTarget(ctx, func(event any) {
		mutex.Lock()
		defer mutex.Unlock()
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			for _, a := range e.Args {
				fmt.Fprintf(os.Stderr, "console: %s %s\n", a.Value, a.Description)
			}
		case *runtime.EventExceptionThrown:
			fmt.Fprintln(os.Stderr, "exception:", e.ExceptionDetails.Text)
		}
	})
	var value json.RawMessage
	wait := func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
	if err := chromedp.Run(ctx, chromedp.Navigate(pages[0]), chromedp.Evaluate(expression, &value, wait)); err != nil {
		return fmt.Errorf("%s: %w", pages[0], err)
	}
	_, err = fmt.Printf("%s\n", value)
	return err
}
