"""The page: files that a browser runs, and what only the server can compute for them. Nothing of it is stored or logged."""
