"""The page: files for a browser, and computations on the server. No question is stored or logged."""
