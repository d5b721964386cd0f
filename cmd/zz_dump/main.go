package main

import (
	"encoding/json"
	"os"

	"listwatch/chapters"
	"listwatch/docs"
	"listwatch/internal/text/book"
)

func main() {
	b, err := book.New(chapters.FS(), docs.FS())
	if err != nil {
		panic(err)
	}
	for _, c := range b.Chapters {
		c.Previous, c.Next = nil, nil
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	_ = e.Encode(b.Chapters)
	_ = e.Encode(b.Documents)
	if b.Check() != nil {
		_ = e.Encode(b.Check().Error())
	}
	s, err := book.Sites(chapters.FS())
	if err != nil {
		panic(err)
	}
	_ = e.Encode(s)
}
