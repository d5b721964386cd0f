package e2e

import (
	"bytes"
	"context"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	printing "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestTheHandoutIsTwoPages prints it as an attendee's browser does, on A4.
func TestTheHandoutIsTwoPages(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL+"/book/docs/HANDOUT")
	var pdf []byte
	p.do(t, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		css := true
		a4 := printing.PrintToPDFParams{PaperWidth: 8.27, PaperHeight: 11.69, PreferCSSPageSize: &css}
		printed, err := cdp.Call(ctx, target, printing.PrintToPDF, a4)
		if err == nil {
			pdf = printed.Data
		}
		return chromedp.Void{}, err
	})
	if n := bytes.Count(pdf, []byte("/Type /Page\n")); n != 2 {
		t.Errorf("%d pages, want 2", n)
	}
}
