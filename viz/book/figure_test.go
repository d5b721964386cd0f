package book

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"listwatch/chapters"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	text "listwatch/internal/text/book"
	"listwatch/viz/stage"
)

// TestWordsMeanPartsOfTheStage holds the table of words against the drawing and against the prose.
func TestWordsMeanPartsOfTheStage(t *testing.T) {
	var drawn struct{ Pipes, Boxes map[string]json.RawMessage }
	require.NoError(t, json.Unmarshal(require.Value(json.Marshal(stage.Geometry))(t), &drawn))
	b := require.Value(text.New(chapters.FS(), nil))(t)
	for _, part := range text.Parts {
		at := drawn.Boxes
		if part.Kind == "queue" {
			at = drawn.Pipes
		}
		assert.True(t, at[part.Name] != nil, "the stage draws no %s %q", part.Kind, part.Name)
		said := 0
		for _, chapter := range b.Chapters {
			said += strings.Count(chapter.HTML, `<span data-part="`+part.Name+`"`)
		}
		assert.True(t, said != 0, "no chapter speaks of %q", part.Name)
	}
}

// TestEveryChapterHasItsMiniStage holds that the steps of the figures are moments of their recordings, and that there
// are enough of them to scroll through.
func TestEveryChapterHasItsMiniStage(t *testing.T) {
	b, err := text.New(chapters.FS(), nil)
	require.NoError(t, err)
	for _, chapter := range b.Chapters {
		f := require.Value(newFigure(chapter.Number))(t)
		if f == nil || len(f.Steps) < 3 {
			t.Errorf("%s has no figure, or one that hardly moves: %+v", chapter.Folder, f)
			continue
		}
		start, records, err := f.Take.Load()
		require.NoError(t, err)
		names := probe.NewNames()
		start.Names(names)
		for i := range records {
			names.Note(&records[i])
		}
		first := records[0].Seq
		for _, s := range f.Steps {
			r := records[s.Seq-first]
			assert.True(t, r.Seq == s.Seq && r.Point == s.Point && names.Sentence(&r) == s.Says,
				"%s: step %+v is record %+v", chapter.Folder, s, r)
		}
	}
}

// TestAFirstTryIsToldInOrder holds that the six chapters whose labs break what the text repairs show that first, from
// the lab's recording, and in the recording's order.
func TestAFirstTryIsToldInOrder(t *testing.T) {
	assert.Equal(t, 6, len(tries), "%d first tries", len(tries))
	for chapter, told := range tries {
		try, err := newAct(told)
		require.True(t, err == nil && try != nil && try.Take.Lab() != "", "chapter %d: %+v, %v", chapter, try, err)
		assert.True(t, slices.IsSortedFunc(try.Steps, func(a, b step) int { return cmp.Compare(a.Seq, b.Seq) }),
			"chapter %d: %+v", chapter, try.Steps)
		var out strings.Builder
		require.NoError(t, miniStage(&figure{act: *try, Try: try}).Render(t.Context(), &out))
		if want := `data-lab="` + try.Take.Lab() + `"`; strings.Count(out.String(), want) != 2*len(try.Steps) {
			t.Errorf("chapter %d does not say of each step that it is of the lab %s", chapter, try.Take.Lab())
		}
	}
}

// TestFiguresTellInOrder holds that the steps of each figure follow each other in time.
func TestFiguresTellInOrder(t *testing.T) {
	b := require.Value(text.New(chapters.FS(), nil))(t)
	for _, chapter := range b.Chapters {
		f := require.Value(newFigure(chapter.Number))(t)
		for i := 1; i < len(f.Steps); i++ {
			assert.True(t, f.Steps[i].Seq > f.Steps[i-1].Seq,
				"%s: step %+v comes before %+v", chapter.Folder, f.Steps[i-1], f.Steps[i])
		}
	}
}
