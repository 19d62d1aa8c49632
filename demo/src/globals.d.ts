/** The version of the package that the page was built with. */
declare const __LAPIDARY_VERSION__: string;
