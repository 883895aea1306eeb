"""One module or package per topic: what it computes, its answers with their sentences, and its figures."""
