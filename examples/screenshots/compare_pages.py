# ruff: noqa: B905, D100, F704, F821
# A script for gateway_run, as a model would write it: which pages look different now? Only those are shown.
import asyncio

pages = range(1, 11)
old = await asyncio.gather(*[browser__screenshot("old", page) for page in pages])
new = await asyncio.gather(*[browser__screenshot("new", page) for page in pages])
found = await asyncio.gather(*[browser__compare(*both) for both in zip(old, new)])
for page, result in zip(pages, found):
    if result["difference"] > 0.001:
        print(f"page {page}: {result['difference']:.1%} of it has changed")
        show(old[page - 1], new[page - 1])
